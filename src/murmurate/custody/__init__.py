"""Who may spend what on whom: the door, and what command line, Python and web page share."""
