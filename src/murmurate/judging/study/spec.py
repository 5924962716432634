"""Read what a study is to do from a TOML file or plain values, checked before anything runs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from murmurate.attacks import NAMES
from murmurate.core.parameters import closest, one_of, whole
from murmurate.errors import Fault, InputError, MurmurateError
from murmurate.mechanisms import mechanism_class
from murmurate.metrics import METRICS

KINDS = ("tony900", "city", "file")
"""Where the trips of a dataset may come from."""
READ_KEYS = ("layout", "columns", "time_zone", "local_zone", "time_unit", "time_format", "encoding", "carry", "space", "strict")
"""What [datasets.NAME.read] may hold: options of `murmurate.read`."""
CLEAN_KEYS = ("day", "min_points", "min_duration_s", "sampled_trips")
"""What [datasets.NAME.clean] may hold."""
MAKE_KEYS = {
    "tony900": ("skaters", "seed"),
    "city": ("people", "days", "seed", "interval_s", "noise_m", "gap_share", "outlier_share", "across_km"),
    "file": (),
}
"""Options of the data that are made here, by kind."""


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """Say where trips come from and how they are prepared."""

    name: str
    kind: str
    file: str | None = None
    make: Mapping[str, Any] = field(default_factory=dict)
    read: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)
    centre: tuple[float, float] | None = None
    """Public origin (lat, lng) of the plane of metres that the word "plane" stands for in a mechanism's settings."""
    grid: str | None = None
    cite: str = ""
    """Shown where the file is absent: where a user may get it."""


@dataclass(frozen=True, kw_only=True)
class MechanismSpec:
    """Name a mechanism under a label, with fixed settings and settings that are swept."""

    label: str
    name: str
    set: Mapping[str, Any] = field(default_factory=dict)
    sweep: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RegressionSpec:
    """Say which swept settings the two layers run over, and which mechanism the others are compared with."""

    over: str = "radius_m"
    budget: str = "epsilon"
    baseline: str | None = None


@dataclass(frozen=True, kw_only=True)
class StudySpec:
    """Hold mechanisms x settings x repeats x metrics x attacks x datasets."""

    name: str
    datasets: tuple[DatasetSpec, ...]
    mechanisms: tuple[MechanismSpec, ...]
    metrics: tuple[str, ...]
    attacks: tuple[str, ...] = ()
    repeats: int = 1
    seed: int | None = None
    """Fixes the noise of a study on public data, so that it repeats; without it noise is drawn as for a release."""
    about: str = ""
    regression: RegressionSpec = field(default_factory=RegressionSpec)
    folder: str = "."
    """Where files named without a folder are looked for first."""


def read_spec(source: str | Path | Mapping[str, Any] | StudySpec) -> StudySpec:
    """Read a study from a TOML file or a mapping; every fault of it comes in one message."""
    if isinstance(source, StudySpec):
        return source
    if isinstance(source, Mapping):
        return _spec(source, name="study", folder=".", file=None)
    path = Path(source)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.", "name a study file such as studies/tony900.toml") from None
    except (OSError, ValueError, RecursionError) as error:  # a number of thousands of digits is no TOMLDecodeError
        raise InputError(f"{path} is not a study that can be read: {error}.") from None
    return _spec(values, name=path.stem, folder=str(path.parent), file=path.name)


class _Reading:
    """Collect what is wrong instead of stopping at the first fault."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.faults: list[Fault] = []

    def wrong(self, reason: str) -> None:
        self.faults.append(Fault(reason, file=self.file))

    def check(self, function: Any, *arguments: Any, **options: Any) -> None:
        try:
            function(*arguments, **options)
        except MurmurateError as error:
            self.wrong(str(error))

    def keys(self, where: str, values: Mapping[str, Any], known: Iterable[str]) -> None:
        names = list(known)
        for key in values:
            if key not in names:
                self.wrong(f"{where} has no {key!r}; it may have {', '.join(names)}.{closest(key, names)}")

    def mapping(self, where: str, value: Any) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        self.wrong(f"{where} must be a table of names and values; got {value!r}.")
        return {}

    def words(self, where: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
            return tuple(dict.fromkeys(value))
        self.wrong(f"{where} must be a list of names; got {value!r}.")
        return ()


def _spec(values: Mapping[str, Any], *, name: str, folder: str, file: str | None) -> StudySpec:
    read = _Reading(file)
    read.keys("a study", values, [item.name for item in fields(StudySpec) if item.name != "folder"])
    metrics = read.words("metrics", values.get("metrics", []))
    attacks = read.words("attacks", values.get("attacks", []))
    for word in metrics:
        read.check(METRICS.load, word)
    for word in attacks:
        read.check(NAMES.load, word)
        if word in NAMES and "trips" not in NAMES[word].reads:
            read.wrong(f"{word} reads {' or '.join(NAMES[word].reads)}, and a study compares trips.")
    if not metrics and not attacks:
        read.wrong('a study measures something: give metrics = ["hausdorff", ...] or attacks = [...].')
    read.check(whole, "repeats", values.get("repeats", 1), at_most=1_000_000)
    if "seed" in values:
        read.check(whole, "seed", values["seed"], at_least=0)
    datasets = [_dataset(read, word, part) for word, part in read.mapping("datasets", values.get("datasets", {})).items()]
    listed = values.get("mechanisms", [])
    if not isinstance(listed, (list, tuple)):
        read.wrong("mechanisms must be written as [[mechanisms]], one table each.")
        listed = []
    mechanisms = [_mechanism(read, part) for part in listed]
    labels = [part.label for part in mechanisms if part]
    for label in {label for label in labels if labels.count(label) > 1}:
        read.wrong(f"two mechanisms are labelled {label!r}; give each a label of its own.")
    if not datasets:
        read.wrong("a study needs a dataset: [datasets.tony900] for instance.")
    if not mechanisms:
        read.wrong("a study needs a mechanism: [[mechanisms]] with a name.")
    regression = read.mapping("regression", values.get("regression", {}))
    read.keys("[regression]", regression, [item.name for item in fields(RegressionSpec)])
    if regression.get("baseline") is not None:
        read.check(one_of, "baseline", regression["baseline"], labels)
    if read.faults:
        raise InputError(read.faults, "docs/studies.md tells what a study may hold; nothing was run.")
    return StudySpec(
        name=str(values.get("name", name)),
        about=str(values.get("about", "")),
        datasets=tuple(part for part in datasets if part),
        mechanisms=tuple(part for part in mechanisms if part),
        metrics=metrics,
        attacks=attacks,
        repeats=values.get("repeats", 1),
        seed=values.get("seed"),
        regression=RegressionSpec(**regression),
        folder=folder,
    )


def _dataset(read: _Reading, name: str, given: Any) -> DatasetSpec | None:
    where = f"[datasets.{name}]"
    values = read.mapping(where, given)
    kind = values.get("kind", "file" if "file" in values else name)
    if kind not in KINDS:
        read.wrong(f"{where}: kind must be one of {', '.join(KINDS)}; got {kind!r}.{closest(str(kind), KINDS)}")
        return None
    own = {"file": ("kind", "file", "read", "cite")}.get(kind, ("kind",))
    read.keys(where, values, (*own, *MAKE_KEYS[kind], "clean", "centre", "grid"))
    parts = {word: read.mapping(f"{where} {word}", values.get(word, {})) for word in ("read", "clean")}
    read.keys(f"[datasets.{name}.read]", parts["read"], READ_KEYS)
    read.keys(f"[datasets.{name}.clean]", parts["clean"], CLEAN_KEYS)
    if kind == "file" and not isinstance(values.get("file"), str):
        read.wrong(f'{where} names no file: file = "trips.parquet".')
    centre = values.get("centre")
    if centre is not None and (not isinstance(centre, (list, tuple)) or len(centre) != 2):
        read.wrong(f"{where}: centre must be [lat, lng] in degrees; got {centre!r}.")
        centre = None
    return DatasetSpec(
        name=name,
        kind=kind,
        file=values.get("file"),
        make={word: values[word] for word in MAKE_KEYS[kind] if word in values},
        read=parts["read"],
        clean=parts["clean"],
        centre=None if centre is None else (float(centre[0]), float(centre[1])),
        grid=values.get("grid"),
        cite=str(values.get("cite", "")),
    )


def _mechanism(read: _Reading, given: Any) -> MechanismSpec | None:
    values = read.mapping("[[mechanisms]]", given)
    read.keys("[[mechanisms]]", values, [item.name for item in fields(MechanismSpec)])
    name = values.get("name")
    if not isinstance(name, str):
        read.wrong('[[mechanisms]] names no mechanism: name = "geoind".')
        return None
    read.check(mechanism_class, name)
    fixed = read.mapping(f"{name}: set", values.get("set", {}))
    sweep = read.mapping(f"{name}: sweep", values.get("sweep", {}))
    for word, listed in sweep.items():
        if not isinstance(listed, (list, tuple)) or not listed:
            read.wrong(f"{name}: sweep.{word} must be a list of values; got {listed!r}.")
        elif word in fixed:
            read.wrong(f"{name}: {word} is both set and swept.")
    return MechanismSpec(
        label=str(values.get("label", name)),
        name=name,
        set=fixed,
        sweep={word: tuple(listed) for word, listed in sweep.items() if isinstance(listed, (list, tuple))},
    )
