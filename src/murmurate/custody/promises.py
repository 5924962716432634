"""Refuse promises that cannot be kept to the people of a file, before anything is spent."""

from __future__ import annotations

import polars as pl

from murmurate.asking.rounds import is_measured
from murmurate.core.guarantee import DP, FINER, GeoInd, Guarantee, NoGuarantee, Unit
from murmurate.core.mechanism import Mechanism
from murmurate.core.names import one_spelling_of
from murmurate.core.pseudonyms import Link, link_word
from murmurate.core.trips import Trips
from murmurate.custody.reading import Private
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.cleaning import BY_PLACE
from murmurate.ingest.columns import NAMES, ROW_NUMBER, plain


def checked(mechanism: Mechanism, private: Private, link: Link) -> Guarantee:
    """Return the guarantee, after refusing whatever public facts rule out, before anything is spent."""
    link_word(link)
    is_measured(mechanism)  # building the budget refuses settings that cannot be used, such as a library that is missing
    guarantee = mechanism.guarantee()
    if isinstance(guarantee, DP) and not mechanism.local:
        _refuse_nobody(guarantee.unit, private)
        _refuse_wide_delta(guarantee, private)
    if isinstance(guarantee, GeoInd):
        _refuse_cut_by_place(private)
    if guarantee.unit.name in ("user", "user_day") and isinstance(private, Trips):
        _refuse_two_spellings(private)
    needs = mechanism.needs | ({"time"} if guarantee.unit.name == "user_day" or link == "day" else set())
    missing = needs - private.carries()
    if missing:
        raise InputError(
            f"{mechanism.name} with these settings needs {', '.join(sorted(needs))}; these trips carry no "
            f"{', '.join(sorted(missing))}."
        )
    wanted = {"none": "point", "day": "user_day", "user": "user"}[link]
    if mechanism.paired and not isinstance(guarantee, NoGuarantee) and wanted not in FINER[guarantee.unit.name]:
        raise ParameterError(
            f"link={link!r} lets anyone join the trips of one {link}, so the promise must cover them together: set unit="
            f"{wanted!r} with max_trips and max_points (the cost adds up over them), or use link='none'."
        )
    return guarantee


def _refuse_nobody(unit: Unit, private: Private) -> None:
    """Refuse a promise to persons or their days where identifiers do not name persons, or name a single one."""
    if unit.name not in ("user", "user_day"):
        return
    columns = private.identity.made_with.get("read", {}).get("columns") or {}
    uid = columns.get("uid")
    trips = {plain(name) for names in NAMES["tid"] for name in names} | {plain(columns.get("tid") or ROW_NUMBER)}
    if uid is not None and plain(uid) in trips | {plain(ROW_NUMBER)}:
        raise InputError(
            f"these data name no people: uid was read from {uid!r}, a column of trips, so a promise for the unit {unit.name} "
            "would hold for single trips only. Nothing was charged.",
            "Give the column that names people, or promise what the data allow: unit=trip.",
        )
    if unit.name == "user" and len(private.identity.uids) == 1:
        raise InputError(
            "all trips belong to one identifier, so the unit user spans the whole file and nothing could be released of it. "
            "Nothing was charged.",
            "Check which column names people, or use unit user_day or trip.",
        )


def _refuse_cut_by_place(private: Private) -> None:
    """Refuse cleaning by places under a promise about places: a split at a stay would show that there was one."""
    used = [name for name in BY_PLACE if private.identity.made_with.get("clean", {}).get(name) is not None]
    if used:
        raise InputError(
            f"cleaning by {' and '.join(used)} looks at the exact places, and its result would show in the times and number of "
            "released points: no promise about places would hold. Nothing was charged.",
            "Leave it out and split by pauses alone (--split-gap, --occupied), or use a mechanism for synthetic trips.",
        )


def _refuse_two_spellings(private: Trips) -> None:
    """Refuse trips made in Python in which two names are one person for the ledger; files are read with one name for each."""
    names = private.user_ids.cast(pl.String)
    if one_spelling_of(names).n_unique() < len(names):
        raise InputError(
            "some people are spelled in two ways (such as '7' and ' 7'), so each would be bounded as two people. Nothing was "
            "charged.",
            "Make the trips with murmurate.read, which gives each person one name, or correct the uid column.",
        )


def _refuse_wide_delta(guarantee: Guarantee, private: Private) -> None:
    """Refuse a delta with which a mechanism might publish one of these people outright, declared or not how many they are."""
    people = len(private.identity.uids)
    if isinstance(guarantee, DP) and guarantee.delta * people >= 1:
        raise InputError(
            f"delta is {guarantee.delta:g}, which is not below 1 over the number of people in these data: such a promise would "
            "allow one of them to be published outright. Nothing was charged.",
            "Give a delta of at most 1 over ten times the number of people, such as --set delta=1e-6.",
        )
