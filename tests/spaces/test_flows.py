"""Drives and flows: hours, seconds, files, and tables that make no sense."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from murmurate.errors import InputError
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from road_town import grid_town, nodes_of, trip

TOWN = grid_town(6)
EAST = [(20.0 + 25.0 * k, 2.0) for k in range(17)]


def test_a_drive_knows_its_links_hours_and_seconds():
    drives = drives_of(trip(EAST, every_s=5.0), TOWN)
    assert nodes_of(TOWN, drives.link) == [0, 1, 2, 3, 4, 5]
    assert drives.seconds[1:-1] == pytest.approx([20.0, 20.0, 20.0], abs=0.5)
    assert np.isnan(drives.seconds[[0, -1]]).all()
    assert set(drives.hour) == {0} and set(drives.day) == {0}
    assert drives.end_nodes[0].tolist() == [0] and drives.end_nodes[1].tolist() == [5]
    assert drives.take(np.array([False, True, True, True, True])).link.tolist() == drives.link[1:].tolist()


def test_local_hours_follow_the_time_zone():
    away = trip(EAST, every_s=5.0)
    there = type(away)(away.table, time_zone="America/Los_Angeles")
    assert set(drives_of(there, TOWN).hour) == {16} and set(drives_of(there, TOWN).day) == {-1}


def test_flows_are_written_and_read_back_link_for_link(tmp_path):
    flows = LinkFlows.of_drives(drives_of(trip(EAST, every_s=5.0), TOWN))
    assert flows.totals.sum() == 5 and flows.length_km == pytest.approx(0.5, rel=0.01)
    flows.write(tmp_path)
    again = LinkFlows.read(tmp_path)
    assert again.table.equals(flows.table) and again.network.fingerprint == TOWN.fingerprint
    assert "18" in (tmp_path / "network.geojson").read_text()


def test_a_folder_without_flows_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"links\.parquet"):
        LinkFlows.read(tmp_path)
    pl.DataFrame({"link": [0], "hour": [0], "count": [1.0]}).write_parquet(tmp_path / "links.parquet")
    (tmp_path / "network.gpkg").write_bytes(b"no database")
    with pytest.raises(InputError, match="no network release"):
        LinkFlows.read(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"link": [TOWN.n_links]}, "no links of this network"), ({"link": [-1]}, "no links"), ({"hour": [24]}, "no hours"),
        ({"count": [-1.0]}, "no counts"), ({"count": [float("nan")]}, "no counts"),
    ],
)  # fmt: skip
def test_rows_that_make_no_sense_are_refused(change, says):
    with pytest.raises(InputError, match=says):
        LinkFlows(network=TOWN, table=pl.DataFrame({"link": [0], "hour": [0], "count": [1.0], **change}))


def test_all_faults_come_at_once():
    with pytest.raises(InputError) as refused:
        LinkFlows(network=TOWN, table=pl.DataFrame({"link": [999], "hour": [99], "count": [-1.0]}))
    assert len(refused.value.faults) == 3
    with pytest.raises(InputError, match="count missing"):
        LinkFlows(network=TOWN, table=pl.DataFrame({"link": [0], "hour": [0]}))
