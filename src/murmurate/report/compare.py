"""Compare several releases of the same data: one table, one window, common scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from murmurate.core.score import Score, number
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.judging.attack_words import attack_label
from murmurate.judging.scoring import Evaluation
from murmurate.judging.verdict import Verdict
from murmurate.releases import KINDS, kind_named
from murmurate.releases.folder import Release
from murmurate.report.figures import ORIGINAL
from murmurate.report.maps import Base, Panel, atlas
from murmurate.report.page import Promise
from murmurate.report.render import render, write_page
from murmurate.report.score_rows import BETTER, row
from murmurate.report.traffic_maps import TrafficMap, comparison_maps
from murmurate.report.view import View
from murmurate.report.words import KEY_ATTACKS
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows


@dataclass(frozen=True)
class Entry:
    """Hold one release to compare; kinds without trips have no evaluation and no attacks."""

    release: Release
    evaluation: Evaluation | None = None
    attacked: Evaluation | None = None
    verdict: Verdict | None = None
    page: str = ""
    """Its own report, relative to the comparison; empty where there is none."""
    attack_page: str = ""
    public_page: str = ""

    @property
    def name(self) -> str:
        return self.release.manifest.mechanism

    @property
    def trips(self) -> Trips | None:
        """The released trips, where this is a release of trips."""
        return self.release.trips if self.release.kind.identifiers and self.release.trips.n_trips else None


@dataclass(frozen=True)
class Cell:
    """Hold one number of a table; `best` where no other release is better."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Hold scores down, releases across."""

    entries: tuple[Entry, ...]
    rows: tuple[tuple[str, str, tuple[Cell, ...]], ...]
    """(what it is, which way is better, its values in the order of the entries)."""


@dataclass(frozen=True)
class Part:
    """Hold what the page says of one release alone: its promise, what it is good for, and one map."""

    entry: Entry
    promise: Promise
    density: Panel | None
    roads: TrafficMap | None

    @property
    def good_for(self) -> str:
        """Return the first sentences of its verdict, without numbers."""
        judged = self.entry.verdict
        return "" if judged is None or not judged.headlines else judged.sentences[0]


def write_comparison(
    path: str | Path, entries: Sequence[Entry], original: Trips, *, grid: Places, base: Base = None, demo: bool = False
) -> Path:
    """Write the comparison of releases of `original`; internal, unless the data are the built-in demo's."""
    if not entries:
        raise InputError("there is no release to compare.", "make at least one.")
    laid = {entry.name: entry.trips for entry in entries}
    sides = {ORIGINAL: original} | {name: trips for name, trips in laid.items() if trips is not None}
    drawn = atlas(grid, sides, base=base, original=ORIGINAL)
    density = {panel.title: panel for panel in drawn.density}
    networks = {panel.title: panel for panel in _network_maps(entries, original, drawn.view)}
    parts = [
        Part(entry, Promise.of(entry.release.manifest), density.get(entry.name), networks.get(entry.name)) for entry in entries
    ]
    text = render(
        "comparison.html.j2",
        demo=demo,
        original=original,
        original_map=density[ORIGINAL],
        parts=parts,
        tables=score_tables(entries),
        attacks=attack_table(entries),
        atlas=drawn,
        networks=networks,
        grid=grid,
    )
    return write_page(path, text)


def score_tables(entries: Sequence[Entry]) -> list[Table]:
    """Return key scores in the order of importance, one table for each kind of release that was measured."""
    judged = [(entry, _by_name(entry.evaluation)) for entry in entries]
    tables = []
    for headline in (kind_named(name).headline for name in KINDS):
        mine = [(entry, found) for entry, found in judged if entry.release.kind.key_scores(found) is headline]
        names = {name: label for name, label in headline.items() if any(name in found for _, found in mine)}
        mine = [(entry, found) for entry, found in mine if any(name in found for name in names)]
        if mine:
            tables.append(_table([entry for entry, _ in mine], [found for _, found in mine], names))
    return tables


def attack_table(entries: Sequence[Entry]) -> Table | None:
    """Return key results of attacks, each beside chance, of every release that was attacked; None where no attack ran."""
    entries = [entry for entry in entries if entry.attacked is not None]
    found = [_by_name(entry.attacked) for entry in entries]
    everything = list(dict.fromkeys(name for scores in found for name in scores))
    if not everything:
        return None
    chosen = [name for name in KEY_ATTACKS if name in everything]
    for name in everything:
        if not any(other.split(".")[0] == name.split(".")[0] for other in chosen):
            chosen.append(name)
    names = {name: attack_label(name) for name in chosen}
    return _table(entries, found, names)


def _network_maps(entries: Sequence[Entry], original: Trips, view: View) -> list[TrafficMap]:
    """Draw the releases of networks; empty where there is none. All of them are of one network here, matched once."""
    released = {entry.name: entry.release.data for entry in entries if "traffic" in entry.release.kind.figures}
    if not released:
        return []
    network = next(iter(released.values())).network
    alike = {name: flows for name, flows in released.items() if flows.network.n_links == network.n_links}
    return comparison_maps(LinkFlows.of_drives(drives_of(original, network)), alike, view)


def _by_name(evaluation: Evaluation | None) -> dict[str, Score]:
    return {} if evaluation is None else {score.name: score for score in evaluation.scores}


def _table(entries: Sequence[Entry], found: Sequence[dict[str, Score]], names: dict[str, str]) -> Table:
    rows = []
    for name, words in names.items():
        scores = [by_name.get(name) for by_name in found]
        there = [score for score in scores if score is not None]
        best = _best(there)
        rows.append((words, BETTER[there[0].better], tuple(_cell(score, best) for score in scores)))
    return Table(tuple(entries), tuple(rows))


def _cell(score: Score | None, best: float | None) -> Cell:
    if score is None:
        return Cell("–")
    text = row(score).value
    if score.chance is not None:
        text += f" (chance {number(score.chance, score.unit)})"
    return Cell(text, best=best is not None and score.value == best)


def _best(scores: Sequence[Score]) -> float | None:
    """Return the value no other release beats; None where nothing can be better, or all are alike."""
    scores = [score for score in scores if math.isfinite(score.value)]
    values = [score.value for score in scores]
    if len(set(values)) < 2 or scores[0].better not in ("lower", "higher", "closer_to_chance"):
        return None
    if scores[0].better == "closer_to_chance":
        return min(scores, key=lambda score: abs(score.value - (score.chance or 0.0))).value
    return min(values) if scores[0].better == "lower" else max(values)
