"""Parts of an audit: segments and their crossings, what is said of each, and the words for all of them."""
