"""Mutate models, inputs, recipes and manifests, and see that each is read or refused in one message.

A case ends well where it works or raises a `MurmurateError`. Any other exception, a killed process, more than ten seconds or
more than 1 GB of memory is a failure. Cases run in a child process, so that a crash is seen and counted. `scripts/fuzz` runs
as many as asked; `tests/test_fuzz.py` runs a few of each.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

LONGEST_S = 10
MOST_BYTES = 10**9

WEIRD_NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, 2**40, -(2**63), 1e30, -1e30, 1e-300, float("nan"), float("inf"), 0.5)
WEIRD_VALUES = (*WEIRD_NUMBERS, None, True, "", "x" * 300, "../../etc/passwd", [], {}, [[1]], "\0", "é" * 40, 10**400)
WEIRD_BYTES = (b"\0", b"\xff", b"-", b"9" * 40, b"nan", b"[" * 3000, b"]", b'"', b"\n", b",", b"<", b"&a;", b"{", b"1e999")


class Case:
    """A folder of seeds, and what is done with a mutated copy."""

    def __init__(self, name: str, seed: Path, mutate: Callable, act: Callable) -> None:
        self.name, self.seed, self.mutate, self.act = name, seed, mutate, act


# -- mutations -----------------------------------------------------------------------------------------------------------


def mutate_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(out) + 1))
        how = int(rng.integers(0, 5))
        if how == 0 and out:
            out[min(at, len(out) - 1)] = int(rng.integers(256))
        elif how == 1:
            out = out[:at]
        elif how == 2:
            out[at:at] = WEIRD_BYTES[int(rng.integers(len(WEIRD_BYTES)))]
        elif how == 3:
            end = int(rng.integers(at, len(out) + 1))
            out[at:at] = out[at : min(end, at + 4000)]
        else:
            del out[at : at + int(rng.integers(1, 50))]
    return bytes(out)


def mutate_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    out = array.copy()
    how = int(rng.integers(0, 9))
    if how <= 3 and out.size:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = np.array(WEIRD_NUMBERS[int(rng.integers(len(WEIRD_NUMBERS)))]).astype(out.dtype)
        if how == 3:
            out[...] = value
        else:
            out.flat[rng.integers(0, out.size, int(rng.integers(1, 4)))] = value
    elif how == 4:
        out = out[: len(out) // 2] if out.ndim else out[None]
    elif how == 5:
        out = out[None]
    elif how == 6:
        with np.errstate(all="ignore"):
            out = out.astype([np.float64, np.int64, np.int8, np.uint8, np.float32, "<U3"][int(rng.integers(6))])
    elif how == 7 and out.ndim:
        rng.shuffle(out)
    else:
        out = np.concatenate([out, out]) if out.ndim else out
    return out


def mutate_json(values: object, rng: np.random.Generator) -> object:
    """Replace, drop or nest one value anywhere in a tree."""
    if isinstance(values, dict) and values and rng.random() < 0.85:
        key = list(values)[int(rng.integers(len(values)))]
        how = rng.random()
        if how < 0.1:
            return {k: v for k, v in values.items() if k != key}
        return {**values, key: mutate_json(values[key], rng)}
    if isinstance(values, list) and values and rng.random() < 0.7:
        at = int(rng.integers(len(values)))
        return [*values[:at], mutate_json(values[at], rng), *values[at + 1 :]]
    return WEIRD_VALUES[int(rng.integers(len(WEIRD_VALUES)))]


def mutate_model(folder: Path, rng: np.random.Generator) -> None:
    """Change one array, one schema or some bytes of a saved model, and let the manifest vouch for it."""
    files = sorted((folder / "model").iterdir())
    file = files[int(rng.integers(len(files)))]
    if file.suffix == ".json":
        text = json.dumps(mutate_json(json.loads(file.read_text()), rng))
        file.write_text(text if rng.random() < 0.95 else "[" * 100_000)
    elif rng.random() < 0.1:
        file.write_bytes(mutate_bytes(file.read_bytes(), rng))
    elif file.suffix == ".npz":
        with np.load(file) as stored:
            arrays = dict(stored)
        name = list(arrays)[int(rng.integers(len(arrays)))]
        arrays[name] = mutate_array(arrays[name], rng)
        np.savez(file, **arrays)
        schema = folder / "model" / "schema.json"
        if schema.is_file() and rng.random() < 0.8:
            values = json.loads(schema.read_text())
            if "arrays" in values:
                values["arrays"] = {k: {"shape": list(a.shape), "dtype": str(a.dtype)} for k, a in arrays.items()}
                schema.write_text(json.dumps(values))
    else:
        np.save(file, mutate_array(np.load(file), rng))
    reseal(folder)


def mutate_manifest(folder: Path, rng: np.random.Generator) -> None:
    path = folder / "manifest.json"
    if rng.random() < 0.15:
        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
    else:
        path.write_text(json.dumps(mutate_json(json.loads(path.read_text()), rng)))


def mutate_file(folder: Path, rng: np.random.Generator) -> None:
    file = next(path for path in folder.iterdir() if path.name.startswith("input"))
    data = file.read_bytes()
    if file.suffix == ".gz" and rng.random() < 0.8:
        file.write_bytes(gzip.compress(mutate_bytes(gzip.decompress(data), rng), 1))
    elif file.suffix == ".npz" and rng.random() < 0.8:
        with np.load(file) as stored:
            arrays = dict(stored)
        name = list(arrays)[int(rng.integers(len(arrays)))]
        arrays[name] = mutate_array(arrays[name], rng)
        np.savez(file, **arrays)
    elif file.suffix == ".geojson" and rng.random() < 0.5:
        file.write_text(json.dumps(mutate_json(json.loads(data), rng)))
    else:
        file.write_bytes(mutate_bytes(data, rng))


def reseal(folder: Path) -> None:
    """Write the hashes of the files as they are now: a stranger can do so, too."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file != path
    }
    path.write_text(json.dumps(manifest))


# -- what is done with them -------------------------------------------------------------------------------------------------


def sample_model(folder: Path, work: Path) -> None:
    import murmurate as mm

    mm.sample(folder, n_out=20, out=work / "out")


def read_input(folder: Path, _work: Path) -> None:
    import murmurate as mm

    mm.read(next(path for path in folder.iterdir() if path.name.startswith("input")))


def read_road(folder: Path, _work: Path) -> None:
    from murmurate.spaces.road.read import read_roads

    read_roads(next(path for path in folder.iterdir() if path.name.startswith("input")))


def read_a_recipe(folder: Path, _work: Path) -> None:
    from murmurate.custody.recipes import build_mechanism, read_recipe

    build_mechanism(read_recipe(next(folder.glob("input*"))))


def open_a_release(folder: Path, _work: Path) -> None:
    from murmurate.judging.checking import verify
    from murmurate.releases.folder import open_release

    open_release(folder, read_space=True)
    verify(folder)


# -- running ---------------------------------------------------------------------------------------------------------------


def most_memory() -> int:
    """The most bytes that this process has held.

    On Linux, `ru_maxrss` of a spawned process starts at what its parent held: it outlives exec, `VmHWM` does not.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _child(case: Case, numbers: list[int], pipe: object) -> None:
    from murmurate.errors import MurmurateError

    with tempfile.TemporaryDirectory() as scratch:  # imports and compiled kernels are loaded before anything is timed
        case.act(case.seed, Path(scratch))
    warnings.simplefilter("error")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    for number in numbers:
        rng = np.random.default_rng([number, 77])
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch)
            copy = work / "in"
            shutil.copytree(case.seed, copy)
            case.mutate(copy, rng)
            pipe.send(("start", number, ""))
            signal.setitimer(
                signal.ITIMER_PROF, LONGEST_S
            )  # of processor time, which other work on the machine does not use up
            signal.alarm(12 * LONGEST_S)
            try:
                case.act(copy, work)
                found, words = "accepted", ""
            except MurmurateError:
                found, words = "refused", ""
            except BaseException as error:  # noqa: BLE001 - this is what is counted
                found, words = "raw exception", "".join(traceback.format_exception(error))[-1500:]
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            if most_memory() > MOST_BYTES:
                pipe.send(("memory", number, ""))
                os._exit(0)
            pipe.send((found, number, words))
    os._exit(0)


def run(case: Case, n: int, *, first: int = 0, batch: int = 2_000) -> tuple[Counter, list[tuple[str, int, str]]]:
    """Run `n` mutations of a case in child processes; return counts by outcome, and every failure with its number."""
    context = multiprocessing.get_context("spawn")  # threads of polars do not survive a fork
    counts: Counter = Counter()
    failures = []
    todo = list(range(first, first + n))
    while todo:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_child, args=(case, todo[:batch], theirs))
        child.start()
        theirs.close()
        open_: int | None = None
        try:
            while True:
                found, number, words = ours.recv()
                if found == "start":
                    open_ = number
                    continue
                todo.remove(number)
                open_ = None
                counts[found] += 1
                if found not in ("accepted", "refused"):
                    failures.append((found, number, words))
        except EOFError:
            pass
        child.join()
        if open_ is not None:  # it died in the middle of a case
            how = (
                "longer than 10 s"
                if child.exitcode in (-signal.SIGALRM, -signal.SIGPROF)
                else f"killed by signal {-(child.exitcode or 0)}"
            )
            counts[how] += 1
            failures.append((how, open_, ""))
            todo.remove(open_)
        elif child.exitcode:
            raise RuntimeError(f"the harness itself failed with {child.exitcode} on {case.name}")
    return counts, failures


# -- seeds ------------------------------------------------------------------------------------------------------------------


def seeds(home: Path) -> dict[str, Case]:
    """Make one small valid example of everything that a stranger may hand over."""
    import murmurate as mm
    from murmurate.demo import city
    from murmurate.mechanisms import build
    from murmurate.noise import seeded
    from murmurate.spaces.road.storage import save
    from murmurate.spaces.road.write import write_roads
    from small_town import GRID, town

    cases: dict[str, Case] = {}
    trips = town(400)
    small = city(people=40, days=2, seed=3)
    save(small.network, home / "network.npz")
    grid = GRID.spec()
    settings = {
        "flock": ("flock", {"space": grid, "epsilon": 5.0, "delta": 1e-5}, trips),
        "flock_on_roads": ("flock", {"space": f"road:{home}/network.npz", "epsilon": 5.0, "delta": 1e-5}, small.trips),
        "dp_loc": ("dp_loc", {"space": grid, "epsilon": 5.0, "delta": 1e-5}, trips),
        "ngram": ("ngram", {"space": grid, "epsilon": 20.0}, trips),
        "plausible": ("plausible", {"space": "grid:44.96,-30.05,45.04,-29.94:500", "epsilon": 5.0, "n_out": 50}, small.trips),
    }
    with mm.Ledger.in_memory() as ledger:
        for name, (mechanism, parameters, private) in settings.items():
            out = home / f"model-{name}"
            mm.fit(
                build(mechanism, parameters),
                private,
                ledger=ledger,
                out=out,
                rng=seeded(1),
                population="everybody",
                override_overlap=True,
            )
            cases[f"model {name}"] = Case(f"model {name}", out, mutate_model, sample_model)
        release = home / "release"
        geoind = mm.GeoIndistinguishability(epsilon=1.0, radius_m=200.0, max_points=50)
        mm.release(geoind, trips, ledger=ledger, out=release, rng=seeded(1), population="everybody", override_overlap=True)
    for name, folder in (("release", release), ("model", home / "model-ngram")):
        cases[f"manifest {name}"] = Case(f"manifest {name}", folder, mutate_manifest, open_a_release)
    table = trips.table.head(120)
    for name, write in {
        "csv": table.write_csv,
        "csv.gz": lambda path: path.write_bytes(gzip.compress(table.write_csv().encode())),
        "parquet": table.write_parquet,
        "geojson": lambda path: path.write_text(_geojson(table)),
        "gpx": lambda path: path.write_text(_gpx(table)),
    }.items():
        cases[f"input {name}"] = _file_case(home, f"input {name}", f"input.{name}", write, read_input)
    few = small.network.take_links(np.arange(small.network.n_links) < 300)
    for ending in ("npz", "graphml", "graphml.gz", "geojson", "gpkg", "parquet"):

        def write(path: Path, ending: str = ending) -> None:
            plain = path.with_name(path.name.removesuffix(".gz"))
            save(few, plain) if ending == "npz" else write_roads(few, plain)
            if ending.endswith(".gz"):
                path.write_bytes(gzip.compress(plain.read_bytes()))
                plain.unlink()

        cases[f"road {ending}"] = _file_case(home, f"road {ending}", f"input.{ending}", write, read_road)
    recipe = 'mechanism = "flock"\nin = "a.csv"\nout = "b"\nlimit = "dp:trip:4"\nlink = "none"\nkeep_ids = false\n'
    recipe += f'[set]\nepsilon = 1.0\ndelta = 1e-6\nspace = "{grid}"\n'
    recipe += '[read]\ntime_zone = "Europe/Helsinki"\ncolumns = { uid = "u" }\n'
    cases["recipe"] = _file_case(home, "recipe", "input.toml", lambda path: path.write_text(recipe), read_a_recipe)
    return cases


def _file_case(home: Path, name: str, file: str, write: Callable, act: Callable) -> Case:
    folder = home / name.replace(" ", "-")
    folder.mkdir()
    write(folder / file)
    return Case(name, folder, mutate_file, act)


def _geojson(table: object) -> str:
    features = [
        {
            "type": "Feature",
            "properties": {"uid": row["uid"], "tid": row["tid"], "datetime": row["datetime"].isoformat()},
            "geometry": {"type": "Point", "coordinates": [row["lng"], row["lat"]]},
        }
        for row in table.head(40).to_dicts()
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def _gpx(table: object) -> str:
    points = "".join(
        f'<trkpt lat="{row["lat"]}" lon="{row["lng"]}"><time>{row["datetime"].isoformat()}</time></trkpt>\n'
        for row in table.head(40).to_dicts()
    )
    return f'<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n{points}</trkseg></trk></gpx>'


def main() -> int:
    """Run as many mutations of each kind as asked, and print a table."""
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=2_000, help="of each saved model")
    parser.add_argument("--inputs", type=int, default=10_000, help="of each format of traces and roads")
    parser.add_argument("--texts", type=int, default=1_000, help="of recipes and of each manifest")
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    chosen = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, case in seeds(Path(folder)).items():
            if chosen.only not in name:
                continue
            n = (
                chosen.models
                if name.startswith("model")
                else chosen.inputs
                if name.startswith(("input", "road"))
                else chosen.texts
            )
            counts, failures = run(case, n, first=chosen.first)
            bad += len(failures)
            print(f"| {name} | {n:,} | {counts['accepted']:,} | {counts['refused']:,} | {len(failures):,} |", flush=True)
            for found, number, words in failures[:5]:
                print(f"  {name} {number}: {found}\n{words}", file=sys.stderr, flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
