"""Show the way from a file to a release in a browser, on one's own machine; everything it does, custody and judging do."""
