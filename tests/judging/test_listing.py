"""Everything that is registered can be listed, with a line about it."""

from __future__ import annotations

import pytest

from murmurate.errors import ParameterError
from murmurate.judging.listing import names


@pytest.mark.parametrize(("what", "one"), [("mechanisms", "flock"), ("metrics", "od_emd"), ("attacks", "reidentify")])
def test_every_kind_is_listed_with_words(what, one):
    listed = dict(names(what))
    assert one in listed and all(listed.values())


def test_what_there_is_not_is_said():
    with pytest.raises(ParameterError, match="metrics"):
        names("metric")
