"""Pages and figures people look at."""
