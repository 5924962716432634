"""Read files, one module per format: each yields rows in batches, with the columns of the file."""
