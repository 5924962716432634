"""Expansion into cells."""

from __future__ import annotations

import pytest

from murmurate.errors import InputError
from murmurate.judging.study import grid, read_spec
from murmurate.judging.study.datasets import load
from murmurate.judging.study.grid import expand


def cells_of(small):
    spec = read_spec(small)
    return expand(spec, {part.name: load(part) for part in spec.datasets})


def test_every_combination_and_the_originals(small):
    cells = cells_of(small)
    assert [cell.label for cell in cells] == ["original", *["simple"] * 4]
    assert [(cell.parameters["epsilon"], cell.parameters["radius_m"]) for cell in cells[1:]] == [
        (0.5, 50),
        (0.5, 100),
        (1.0, 50),
        (1.0, 100),
    ]
    assert all(cell.repeats == 2 for cell in cells[1:])


def test_repeats_are_cut_into_cells_that_cover_each_once(small, monkeypatch):
    small["repeats"] = 7
    monkeypatch.setattr(grid, "CELL_POINTS", 3 * 30 * 14)
    first_setting = [cell for cell in cells_of(small) if cell.setting == 1]
    covered = [repeat for cell in first_setting for repeat in range(cell.first, cell.first + cell.repeats)]
    assert covered == list(range(7))
    assert len(first_setting) > 1


def test_a_key_changes_with_everything_the_result_depends_on(small):
    before = {cell.key for cell in cells_of(small)}
    assert len(before) == 5
    assert before == {cell.key for cell in cells_of(small)}
    for change in (
        {"seed": 6},
        {"metrics": ["hausdorff"]},
        {"attacks": ["reidentify"]},
        {"datasets": {"tony900": {"skaters": 31}}},
        {"datasets": {"tony900": {"skaters": 30, "clean": {"min_points": 14}}}},
    ):
        assert not before & {cell.key for cell in cells_of({**small, **change})}, change


def test_a_label_or_a_name_does_not_change_a_key(small):
    before = [cell.key for cell in cells_of(small)]
    small["name"], small["mechanisms"][0]["label"] = "other", "other"
    assert [cell.key for cell in cells_of(small)] == before


def test_bad_settings_are_all_refused_before_any_runs(small):
    small["mechanisms"][0]["sweep"]["radius_m"] = [50, 0, -1]
    with pytest.raises(InputError) as caught:
        cells_of(small)
    assert len(caught.value.faults) == 4


def test_the_word_plane_needs_a_plane(small):
    small["mechanisms"][0]["set"]["space"] = "grid"
    with pytest.raises(InputError, match="grid"):
        cells_of(small)
    small["mechanisms"][0]["set"]["space"] = "plane"
    assert len(cells_of(small)) == 5


def test_what_is_measured_does_not_change_the_noise(small):
    seeds = [cell.noise_seed for cell in cells_of(small)]
    assert len(set(seeds)) == len(seeds)
    assert [cell.noise_seed for cell in cells_of({**small, "metrics": ["hausdorff"], "attacks": ["reidentify"]})] == seeds
    assert not set(seeds) & {cell.noise_seed for cell in cells_of({**small, "seed": 6})}
