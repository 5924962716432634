"""Shared parts of synthesisers, over plain arrays: zones, ends, steps, paths, calibration."""
