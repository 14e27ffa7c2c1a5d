"""From results to one typed page, and from the page to HTML."""
