"""Decide who may spend what: charges, limits, populations and recipes, shared by Python, the command line and pages."""
