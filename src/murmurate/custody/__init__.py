"""Who may spend what: the door, charges, limits, populations and recipes, shared by Python, the command line and pages."""
