"""From files and frames to validated trips: read, clean, segment, discretise."""
