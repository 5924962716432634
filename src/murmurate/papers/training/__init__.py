"""Private training: Poisson batches of units, exact clipping by ghost norms, secure noise, a record of what was spent."""
