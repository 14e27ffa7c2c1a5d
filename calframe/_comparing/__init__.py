"""Two models on the same rows: the rows they share, what metrics read of them, and what is found."""
