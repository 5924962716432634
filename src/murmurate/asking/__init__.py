"""Count private trips, clip each unit and add noise. A mechanism only names the tables; exact counts stay in this package.

`table` holds what is public (tables, rounds, answers), `budget` draws noise and refuses overspending, `clipping` adds up what
units contribute, `bounding` says which trips of a unit are read, and `rounds` runs the rounds over parts of people.
"""

from murmurate.asking.budget import Budget
from murmurate.asking.table import STEPS, Answer, Contributions, Facts, Norm, Part, Round, SparseTable, Table, TreeTable

__all__ = ["STEPS", "Answer", "Budget", "Contributions", "Facts", "Norm", "Part", "Round", "SparseTable", "Table", "TreeTable"]
