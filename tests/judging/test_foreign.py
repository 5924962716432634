"""Tables of other tools: counts of zones, pairs and links are recognised, measured and attacked; nothing is promised."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.errors import InputError
from murmurate.judging.foreign import NOTHING_PROMISED, flows_of, read_foreign
from murmurate.spaces import parse
from murmurate.spaces.zone_trips import ZoneTrips

CITY = mm.demo.city(people=60, days=3, seed=5, interval_s=60)
SPACE = "grid:44.961,-30.055,45.039,-29.945:1000"
GRID = parse(SPACE)


def pairs(trips, places=GRID, by_hour=False):
    """Exact counts of pairs of zones, as a tool without any protection would release them."""
    found = ZoneTrips.of(trips, places)
    table = pl.DataFrame({"origin": found.origin, "destination": found.destination, "hour": found.departure})
    return table.group_by(["origin", "destination", *(["hour"] if by_hour else [])]).agg(count=pl.len())


@pytest.mark.parametrize(
    ("names", "ending"),
    [
        (("from", "to", "Trips"), "csv"),
        (("Origin Zone", "Destination Zone", "flow"), "parquet"),
        (("PULocationID", "DOLocationID", "n"), "tsv"),
    ],
)
def test_matrices_are_recognised_in_usual_spellings(tmp_path, names, ending):
    table = pairs(CITY.trips).rename(dict(zip(("origin", "destination", "count"), names, strict=True)))
    file = tmp_path / f"od.{ending}"
    if ending == "parquet":
        table.write_parquet(file)
    else:
        table.write_csv(file, separator="\t" if ending == "tsv" else ",")
    found = read_foreign(file, space=GRID)
    assert found.kind == "flows"
    assert found.matrix(complete=False).sum() == table[names[2]].sum()


def test_hourly_counts_of_named_cells_are_read(tmp_path):
    found = ZoneTrips.of(CITY.trips, GRID)
    names = np.array(GRID.names())
    table = pl.DataFrame({"cell_id": names[found.origin], "time": [f"2024-01-08T{hour:02}:30" for hour in found.departure]})
    table.group_by(["cell_id", "time"]).agg(visits=pl.len()).write_csv(tmp_path / "hours.csv")
    flows = read_foreign(tmp_path / "hours.csv", space=GRID)
    true = np.zeros((GRID.n_cells, 24))
    np.add.at(true, (found.origin, found.departure), 1)
    assert (np.nan_to_num(flows.totals("departures")) == true).all()


def test_exact_counts_are_attacked_with_success_and_those_of_others_are_not():
    person = np.asarray(CITY.trips.trip_user)
    mine, theirs = (CITY.trips.take_trips(np.flatnonzero(person % 2 == k)) for k in (0, 1))
    exact = mm.attack(flows_of(pairs(mine), GRID), mine, holdout=theirs)
    assert exact["membership.auc"].value > 0.6
    assert exact["singling_out.success"].value > exact["singling_out.success"].chance + 0.1
    assert exact["reconstruct.lone_pairs"].value == 1
    assert exact["reconstruct.lone_pairs"].chance == 0
    other = mm.attack(flows_of(pairs(theirs), GRID), mine)
    assert abs(other["singling_out.success"].value - other["singling_out.success"].chance) < 0.1
    assert other["reconstruct.lone_pairs"].value < 0.5


def test_evaluations_compare_with_exact_counts():
    found = mm.evaluate(flows_of(pairs(CITY.trips, by_hour=True), GRID), CITY.trips)
    assert all(score.value == 0 or score.better == "higher" or np.isnan(score.value) for score in found)


@pytest.mark.parametrize(
    ("table", "space", "words"),
    [
        ({"origin": ["r0c0"], "destination": ["nowhere"], "count": [1]}, SPACE, "name no place"),
        ({"origin": [0], "destination": [1], "count": ["many"]}, SPACE, "no numbers"),
        ({"zone": [0], "hour": [25], "count": [1]}, SPACE, "hours"),
        ({"zone": [0], "count": [1]}, None, "where they are is not in it"),
        ({"link": [0], "hour": [1], "count": [1]}, SPACE, "--space road"),
        ({"colour": ["red"], "count": [1]}, SPACE, ""),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_message(tmp_path, table, space, words):
    pl.DataFrame(table).write_csv(tmp_path / "table.csv")
    with pytest.raises(InputError) as caught:
        read_foreign(tmp_path / "table.csv", space=None if space is None else GRID)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("count", pl.lit(1e300), "add up to more"),
        ("count", pl.struct("count"), "column count: is of type Struct"),
        ("origin", pl.concat_list("origin"), "column origin: is of type List"),
        ("origin", pl.lit(b"\xff\xfe"), "cannot be read as a table of counts"),
        ("hour", pl.concat_list("hour"), "column hour: is of type List"),
        ("hour", pl.date(2024, 1, 1), "column hour: is of type Date"),
        ("hour", pl.duration(hours=3), "column hour: is of type Duration"),
    ],
)
def test_columns_of_other_types_are_refused_in_one_message(tmp_path, column, value, words):
    table = pl.DataFrame({"origin": [0, 1], "destination": [1, 0], "hour": [8, 9], "count": [3, 4]})
    table.with_columns(value.alias(column)).write_parquet(tmp_path / "table.parquet")
    with pytest.raises(InputError) as caught:
        read_foreign(tmp_path / "table.parquet", space=GRID)
    assert words in str(caught.value)


def test_two_spellings_of_a_column_and_a_separator_within_a_name_are_no_fault(tmp_path):
    table = pl.DataFrame({"Origin": [0, 1], "destination": [1, 0], "count": [b"3", b"4"], "origin": ["x", "y"]})
    table.write_parquet(tmp_path / "table.parquet")
    assert read_foreign(tmp_path / "table.parquet", space=GRID).matrix(complete=False).sum() == 7
    (tmp_path / "table.csv").write_text('"place, zone",cell,count\na,0,3\n')
    with pytest.raises(InputError, match="its first line does not name"):
        read_foreign(tmp_path / "table.csv", space=GRID)


def test_links_without_a_number_are_counted_and_negative_counts_are_none(tmp_path):
    network = CITY.network
    table = pl.DataFrame({"link": [0, None, 2], "hour": [1, 1, 1], "count": [3, 4, -5]})
    table.write_csv(tmp_path / "links.csv")
    with pytest.raises(InputError, match="row 1, column link: 1 values are no links"):
        read_foreign(tmp_path / "links.csv", space=network)
    table.drop_nulls().write_csv(tmp_path / "links.csv")
    assert read_foreign(tmp_path / "links.csv", space=network).totals.sum() == 3


def test_the_page_and_the_file_say_that_nothing_is_promised(tmp_path):
    from typer.testing import CliRunner

    from murmurate.cli import app

    pairs(CITY.trips).write_csv(tmp_path / "od.csv")
    CITY.trips.table.write_parquet(tmp_path / "private.parquet")
    for command in ("attack", "evaluate"):
        page, scores = tmp_path / f"{command}.html", tmp_path / f"{command}.json"
        ran = CliRunner().invoke(app, [
            command, "--release", str(tmp_path / "od.csv"), "--against", str(tmp_path / "private.parquet"), "--space", SPACE,
            "--html", str(page), "--json", str(scores),
        ])  # fmt: skip
        assert ran.exit_code == 0, ran.output
        assert "nothing is promised" in page.read_text()
        assert json.loads(scores.read_text())["note"] == NOTHING_PROMISED
        assert json.loads(scores.read_text())["scores"]
