"""Read files and frames into validated trips; clean, segment and discretise them."""
