"""Measure what a release is good for and what it reveals: evaluate, attack, verify, and studies of many settings."""
