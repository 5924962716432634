"""Pieces that synthesisers share, over plain arrays: zones, ends, moves, paths, calibration."""
