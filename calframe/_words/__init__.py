"""Numbers, names and lines of text as a reader wants them."""
