"""`python -m murmurate`."""

from murmurate.cli import main

main()
