"""Advice: from public facts and declared numbers, within the limit, and as a recipe that runs."""

import tomllib

import pytest

from murmurate.core.accounting import compose
from murmurate.custody.advice import PROTECT, advise
from murmurate.custody.choosing import TOTAL_EPSILON
from murmurate.custody.limits import parse_limit
from murmurate.custody.recipes import build_mechanism, read_recipe
from murmurate.errors import ParameterError

HELSINKI = (60.1, 24.8, 60.3, 25.2)


@pytest.mark.parametrize("protect", PROTECT)
@pytest.mark.parametrize("purpose", ["synthetic_trips", "zone_tables", "moved_points", "whole_days"])
@pytest.mark.parametrize("repeats", [1, 12])
def test_every_recipe_runs_as_it_is_and_stays_within_its_limit(protect, purpose, repeats, tmp_path):
    advice = advise(protect=protect, purpose=purpose, repeats=repeats, box=HELSINKI, people=3000, trips=90_000, days=10)
    (tmp_path / "recipe.toml").write_text(advice.recipe)
    recipe = read_recipe(tmp_path / "recipe.toml")
    mechanism, _ = build_mechanism(recipe)
    guarantee = mechanism.guarantee()
    assert recipe.mechanism == advice.mechanism == mechanism.name
    assert guarantee.unit.name == advice.unit == ("user" if purpose == "whole_days" else protect)
    limit = parse_limit(recipe.limit, guarantee)
    if guarantee.kind == "dp":
        spent = compose([*guarantee.events] * repeats, delta=limit["delta"])
        assert spent <= limit["epsilon"] * (1 + 1e-9) == TOTAL_EPSILON[advice.unit] * (1 + 1e-9)
    else:
        assert guarantee.epsilon_per_m * repeats <= limit["epsilon_per_m"] * (1 + 1e-5)
        assert limit["epsilon_per_m"] * guarantee.radius_m <= TOTAL_EPSILON[advice.unit] * (1 + 1e-5)


def test_more_releases_leave_less_for_each():
    often = [advise(box=HELSINKI, people=3000, trips=90_000, repeats=n).epsilon for n in (1, 2, 12, 52)]
    assert often == sorted(often, reverse=True)
    assert often[2] > often[0] / 12  # Gaussian noise composes better than a plain sum


def test_delta_lies_well_below_one_over_the_declared_units():
    for people in (100, 10_000, 1_000_000):
        assert 0 < advise(protect="user", box=HELSINKI, people=people, trips=30 * people).delta <= 1 / (100 * people)


def test_few_trips_get_coarse_cells_and_no_delta():
    few, many = (advise(protect="trip", box=HELSINKI, trips=trips) for trips in (500, 500_000))
    assert few.cell_m > many.cell_m == 250
    assert few.delta == 0 < many.delta


def test_what_is_missing_is_said():
    with pytest.raises(ParameterError, match="--place"):
        advise(purpose="synthetic_trips")
    with pytest.raises(ParameterError, match="--roads"):
        advise(purpose="road_flows", box=HELSINKI)
    with pytest.raises(ParameterError, match="Did you mean"):
        advise(protect="users", box=HELSINKI)
    with pytest.raises(ParameterError, match="purpose must be one of"):
        advise(purpose="everything", box=HELSINKI)


def test_the_recipe_holds_reading_cleaning_and_what_was_declared():
    advice = advise(
        box=HELSINKI,
        source='a "b".csv',
        read={"time_zone": "Europe/Helsinki", "columns": {"uid": "Taxi ID"}},
        clean={"split_gap_s": 300.0},
        declared=["The box is the extent, rounded."],
    )
    values = tomllib.loads(advice.recipe)
    assert values["in"] == 'a "b".csv'
    assert values["read"]["columns"] == {"uid": "Taxi ID"}
    assert values["clean"] == {"split_gap_s": 300.0}
    assert values["declared"] == ["The box is the extent, rounded."]
    assert advice.to_json()["recipe"] == advice.recipe


@pytest.mark.parametrize("protect", ["trip", "user_day", "user"])
def test_more_units_and_a_smaller_box_advise_cells_that_are_not_larger(protect):
    """From a few hundred trips to ten million; the declared numbers, the area and epsilon decide."""
    town, region = (60.1, 24.8, 60.3, 25.2), (60.0, 24.0, 61.0, 26.0)
    sizes = [(300, 50), (3_000, 300), (30_000, 3_000), (300_000, 30_000), (10_000_000, 1_000_000)]
    cells = {
        box: [advise(protect=protect, box=box, people=people, trips=n, days=7).cell_m for n, people in sizes]
        for box in (town, region)
    }
    for found in cells.values():
        assert found == sorted(found, reverse=True), "more trips never ask for larger cells"
        assert 250 <= found[-1] < found[0] <= 10_000
    assert all(small <= large for small, large in zip(cells[town], cells[region], strict=True))
    poor, rich = (
        advise(protect=protect, box=town, trips=3_000, people=300, days=7, total_epsilon=e).cell_m for e in (0.2, 8.0)
    )
    assert rich < poor
