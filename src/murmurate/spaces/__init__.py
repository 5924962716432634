"""Public geography: planes, grids, road networks."""
