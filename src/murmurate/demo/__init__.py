"""Public data made here: the built-in city and Tony-900."""
