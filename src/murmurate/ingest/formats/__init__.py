"""One file a format: each gives the rows of a file in batches, columns as the file has them."""
