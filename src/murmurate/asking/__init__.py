"""The asking core: a mechanism says which noisy tables it wants; exact counts are made, clipped and noised here alone.

`table` holds what is public (tables, rounds, answers), `budget` draws noise and refuses overspending, `clipping` adds up what
units contribute, `bounding` says which trips of a unit are read, and `rounds` runs the rounds over parts of people.
"""

from murmurate.asking.budget import Budget
from murmurate.asking.table import STEPS, Answer, Contributions, Facts, Norm, Part, Round, SparseTable, Table, TreeTable

__all__ = ["STEPS", "Answer", "Budget", "Contributions", "Facts", "Norm", "Part", "Round", "SparseTable", "Table", "TreeTable"]
