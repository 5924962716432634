"""Mobility profiles and how alike they are."""
