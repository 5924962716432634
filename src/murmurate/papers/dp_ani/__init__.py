"""Reproduce DP-ANI: noise ranges, moved trip ends and trips joined again."""
