"""Rehearse every product, unit and stop on the built-in city, and write the table that the studio shows before a file is read.

Run it again when a mechanism changes: python scripts/studio_standin.py [MECHANISM ...]. Public data, seeded, nothing charged.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

import murmurate as mm
from murmurate.errors import MurmurateError
from murmurate.mechanisms import NAMES
from murmurate.report.ground import BaseMap
from murmurate.report.view import View
from murmurate.studio.board import drawn_ground, rehearsed
from murmurate.studio.drafts import Draft
from murmurate.studio.products import CELL_M, UNITS, dial, first_parameters, promise_of, space_wanted
from murmurate.studio.standin import PATH

PEOPLE, DAYS, SEED, N_OUT = 150, 7, 1, 1000
"""Size of the stand-in, its seed, and how many trips are drawn."""


def main(only: list[str]) -> None:
    """Make the table anew, or the rows of some mechanisms."""
    city = mm.demo.city(people=PEOPLE, days=DAYS, interval_s=30, seed=SEED)
    grid, view = city.grid(CELL_M), View.of(city.grid(CELL_M))
    table: dict[str, Any] = json.loads(gzip.decompress(PATH.read_bytes())) if only and PATH.is_file() else {"boards": {}}
    network = city.network
    table |= {
        "city": {"people": PEOPLE, "days": DAYS, "trips": city.trips.n_trips, "box": list(city.box), "grid": grid.spec()},
        **drawn_ground(view, BaseMap(network, city.outlines()), grid),
    }
    for name in only or NAMES:
        for unit in UNITS:
            draft = Draft(id="0" * 16, folder=Path(), made="", unit=unit)
            wanted = space_wanted(name)
            space = {"grid": grid, "road": network}.get(wanted)
            given = {**first_parameters(draft, name), **({"space": space} if wanted else {})}
            if "n_out" in given:
                given["n_out"] = N_OUT
            try:
                promised = promise_of(name, given).unit.name
            except MurmurateError as error:
                print(f"{name} {unit}: {error}")  # noqa: T201
                continue
            key = f"{name}/{promised}"
            if "unit" not in given and unit != "trip":
                continue  # a mechanism with one unit of its own is measured once
            parameter, stops = dial(name)
            settings = [(value, {**given, parameter: int(value) if parameter == "k" else value}) for value in stops]
            began = time.process_time()
            table["boards"][key] = rehearsed(name, settings, city.trips, grid=grid, seed=SEED)
            print(f"{key}: {time.process_time() - began:.1f} CPU s")  # noqa: T201
            for stop in table["boards"][key]["stops"]:  # a look at every row before it is shipped
                print("   ", stop["value"], stop["scores"], stop.get("refused", ""))  # noqa: T201
            # mtime 0, so that the same table is the same file
            PATH.write_bytes(gzip.compress(json.dumps(table, separators=(",", ":")).encode(), 9, mtime=0))
    print(f"{PATH.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
