"""Write releases in the formats that planners exchange; each export is accompanied by the guarantee and the statement.

Beside an export OUT lies OUT.guarantee.json: which release it was made from, what that promises, and the hash of every file.
Exporting reads a release alone, so it costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmurate import __version__
from murmurate.core.guarantee import to_json
from murmurate.core.mechanism import Mechanism
from murmurate.core.parameters import one_of
from murmurate.core.registry import Entry, Registry
from murmurate.core.space import Floats
from murmurate.errors import OutputError, ParameterError, VerifyError
from murmurate.ingest.matrices import read_omx
from murmurate.releases.folder import Release, check_free
from murmurate.releases.manifest import FILE, hash_file


@dataclass(frozen=True)
class Format(Entry):
    """Say where a format is written, and which kinds of release have it.

    The function takes the release, the path to write and the sentences that say what the data promise; it writes a file, or
    makes a folder of that name.
    """

    reads: tuple[str, ...] = ("flows",)
    prior: bool = False
    """Whether it writes whole matrices, which a public matrix may complete."""


FORMATS: Registry[Format] = Registry(
    "export format",
    {
        "csv": Format("murmurate.exports.tables:write_csv", reads=("flows", "trips", "network")),
        "geojson": Format("murmurate.exports.tables:write_geojson", reads=("flows", "trips")),
        "gpkg": Format("murmurate.exports.tables:write_gpkg", reads=("flows", "trips")),
        "geoparquet": Format("murmurate.exports.tables:write_geoparquet", reads=("flows", "trips")),
        "omx": Format("murmurate.exports.matrices:write_omx", prior=True),
        "aequilibrae": Format("murmurate.exports.matrices:write_aequilibrae", prior=True),
        "flowmap": Format("murmurate.exports.flow_maps:write_flowmap"),
        "kepler": Format("murmurate.exports.flow_maps:write_kepler", reads=("flows", "trips")),
        "gtfs-ride": Format("murmurate.exports.feeds:write_gtfs_ride"),
        "mds": Format("murmurate.exports.feeds:write_mds", reads=("trips",)),
        "sumo": Format("murmurate.exports.simulations:write_sumo", reads=("trips",)),
        "matsim": Format("murmurate.exports.simulations:write_matsim", reads=("trips",)),
    },
)
"""Name -> where it is written and for which kinds. One line a format."""

BESIDE = ("csv", "geojson", "gpkg")
"""Formats that `release` writes into the folder of a release, beside its own files; the others are exported."""

SIDECAR = ".guarantee.json"
"""Ending of the file beside an export that says what it promises."""


def export(release: Release, *, format: str, out: str | Path, prior: str | Path | None = None) -> Path:
    """Write a release in another format and, beside it, what it promises. Reads nothing private.

    `prior` is a public OMX matrix (`FILE` or `FILE#NAME`) of the same places: whole matrices share by it what is not listed.
    """
    _check_fits(format, release.manifest.kind, FORMATS)
    options = {} if prior is None else {"prior": _prior(release, format, prior)}
    path = Path(out)
    sidecar = sidecar_of(path)
    for one in (path, sidecar):
        check_free(one)
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}-"))
        made = temporary / path.name
        FORMATS.load(format)(release, made, promise_of(release), **options)
        about = {
            "format": format,
            "release_id": release.manifest.release_id,
            "mechanism": release.manifest.mechanism,
            "guarantee": to_json(release.manifest.guarantee),
            "promise": promise_of(release),
            "manifest_sha256": hashlib.sha256(release.manifest.text().encode()).hexdigest(),
            "seeded": release.manifest.seeded,
            "demo": release.manifest.demo,
            "murmurate": __version__,
            **({} if prior is None else {"prior": Path(prior).name}),
            "files": _hashes(made),
        }
        beside = temporary / sidecar.name
        beside.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        made.rename(path)  # both are whole by now
        beside.rename(sidecar)
    except OSError as error:
        raise OutputError(f"{path} could not be written: {error.strerror or error}.") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return path


def check_formats(formats: str | Sequence[str], mechanism: Mechanism) -> tuple[str, ...]:
    """Return the formats to write beside a release; refuse what a release of this mechanism cannot be written in."""
    wanted = tuple(dict.fromkeys([formats] if isinstance(formats, str) else formats))
    kind = getattr(mechanism, "makes", "trips" if mechanism.emits else "other data")
    for format in wanted:
        _check_fits(format, kind, BESIDE)
    return wanted


def write_beside(release: Release, formats: Sequence[str]) -> None:
    """Write formats into the folder of a release that is being made: `data.csv`, or a folder `csv` of several tables."""
    for format in formats:
        path = release.folder / f"data.{format}"
        FORMATS.load(format)(release, path, promise_of(release))
        if path.is_dir():
            path.rename(release.folder / format)


def _check_fits(format: str, kind: str, among: Iterable[str]) -> None:
    fitting = [name for name in among if kind in FORMATS[name].reads]
    if format not in fitting:
        if format in among:
            raise ParameterError(f"a release of {kind} has no format {format}; it has {', '.join(fitting) or 'none'}.")
        one_of("format", format, fitting or among)


def _prior(release: Release, format: str, prior: str | Path) -> Floats:
    """Read a public matrix for a format that writes whole matrices."""
    if not FORMATS[format].prior:
        fitting = [name for name, found in FORMATS.items() if found.prior]
        raise ParameterError(f"the format {format} writes no whole matrices; prior= goes with {', '.join(fitting)}.")
    return read_omx(prior, release.data.places.n_cells)


def sidecar_of(path: Path) -> Path:
    """Return the file beside an export that says what it promises."""
    return path.with_name(path.name + SIDECAR)


def is_export(path: str | Path) -> bool:
    """Return whether a path is an export, or the file beside one, and no release folder."""
    file = Path(path).resolve()  # "." has no name of its own
    return not (file / FILE).is_file() and (file.name.endswith(SIDECAR) or sidecar_of(file).is_file())


def promise_of(release: Release) -> list[str]:
    """Return the guarantee and the statement of a release as sentences."""
    manifest = release.manifest
    marks = ["This is a test or demo release: its noise can be taken off again."] if manifest.seeded or manifest.demo else []
    return [*marks, manifest.guarantee.words(), *manifest.statement]


def verify_export(path: str | Path, *, release: Release | None = None) -> dict[str, str]:
    """Check an export against the file beside it and, where it is given, against its release."""
    file = Path(path)
    sidecar = file if file.name.endswith(SIDECAR) else sidecar_of(file)
    file = file.with_name(sidecar.name.removesuffix(SIDECAR))
    if not sidecar.is_file():
        raise VerifyError(f"{file} is no export of a release: there is no {sidecar.name} beside it.")
    try:
        about: dict[str, Any] = json.loads(sidecar.read_text(encoding="utf-8"))
        expected = dict(about["files"])
        words = {name: str(about[name]) for name in ("format", "release_id", "mechanism")}
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise VerifyError(f"{sidecar} cannot be read: {error}.") from None
    found = _hashes(file) if file.exists() else {}
    problems = [f"- {name} is missing" for name in expected if name not in found]
    problems += [f"- {name} is not listed in {sidecar.name}" for name in found if name not in expected]
    problems += [
        f"- {name} was changed (its hash differs)" for name in expected if name in found and found[name] != expected[name]
    ]
    if release is not None:
        digest = hashlib.sha256(release.manifest.text().encode()).hexdigest()
        if digest != about.get("manifest_sha256") or about.get("promise") != promise_of(release):
            problems.append("- it was made from another release, or says another promise than its release")
    if problems:
        raise VerifyError(f"{file} is not the export that was written:\n" + "\n".join(problems))
    return {**words, "files": f"{len(expected)} as written", "promise": str(about["promise"][0])}


def _hashes(path: Path) -> dict[str, str]:
    if path.is_file():
        return {path.name: hash_file(path)}
    return {one.relative_to(path).as_posix(): hash_file(one) for one in sorted(path.rglob("*")) if one.is_file()}
