"""Studies: mechanisms x settings x repeats x metrics x attacks x datasets, in one table, and the two-layer regression."""

from murmurate.judging.study.regression import Line, Regression, regress, through_origin
from murmurate.judging.study.run import StudyResult, study
from murmurate.judging.study.spec import StudySpec, read_spec
from murmurate.judging.study.table import read_results

__all__ = ["Line", "Regression", "StudyResult", "StudySpec", "read_results", "read_spec", "regress", "study", "through_origin"]
