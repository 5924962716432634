"""OMX: matrices in HDF5 as travel models read them (openmatrix, AequilibraE, Visum, EMME, Cube)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from murmurate.core.space import Floats
from murmurate.errors import MissingPart
from murmurate.releases.folder import Release
from murmurate.spaces.zone_flows import HOURS, PARTS, ZoneFlows

MAX_HOURLY_ZONES = 1_000
"""Up to this many zones, hours get matrices of their own: 24 of them have 190 MB then."""


def write_omx(release: Release, out: Path, promise: list[str], prior: Floats | None = None) -> None:
    """Write day, parts of the day and hours as matrices; the rest is shared among pairs that are not listed,
    by a public matrix where `prior` is one.

    `day_listed` holds the published pairs alone. The mapping `zone` numbers zones from 1 on, as travel models do.
    """
    _write(release.data, out, promise, mapping="zone", prior=prior)


def write_aequilibrae(release: Release, out: Path, promise: list[str], prior: Floats | None = None) -> None:
    """Write the same with the mapping `taz`, which AequilibraE takes as the index of its zones."""
    _write(release.data, out, promise, mapping="taz", prior=prior)


def _write(flows: ZoneFlows, out: Path, promise: list[str], *, mapping: str, prior: Floats | None) -> None:
    try:
        import h5py
    except ImportError:
        raise MissingPart("OMX files need h5py: pip install 'murmurate[geo]'.") from None
    n = flows.places.n_cells
    with h5py.File(out, "w") as file:
        file.attrs["OMX_VERSION"] = np.bytes_(b"0.2")
        file.attrs["SHAPE"] = np.array([n, n], dtype=np.int32)
        file.attrs["murmurate_promise"] = "\n".join(promise)
        data, lookup = file.create_group("data"), file.create_group("lookup")
        lookup.create_dataset(mapping, data=np.arange(1, n + 1, dtype=np.int32))
        for name, matrix in _matrices(flows, prior):
            data.create_dataset(name, data=matrix, compression="gzip", compression_opts=1, shuffle=True)
            data[name].attrs["promise"] = promise[0]


def _matrices(flows: ZoneFlows, prior: Floats | None) -> Any:
    yield "day", flows.matrix(prior=prior)
    yield "day_listed", flows.matrix(complete=False)
    for number, part in enumerate(PARTS):
        yield part, flows.matrix(time="part", period=number, prior=prior)
    if flows.places.n_cells <= MAX_HOURLY_ZONES:
        for hour in range(HOURS):
            yield f"hour_{hour:02d}", flows.matrix(time="hour", period=hour, prior=prior)
