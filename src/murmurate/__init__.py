"""Murmurate: publish mobility data without exposing anyone, and prove it."""

__version__ = "0.1.0"
