"""Reproduce Bindschaedler and Shokri 2016: fakes decoded from semantic seeds, their tests and the baselines."""
