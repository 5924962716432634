"""One page: the printed tables and figures of the four publications beside ours, each with the reading that was used.

    python benchmarks/papers.py [--size small|full] [--html papers.html] [--data DIR] [--kept benchmarks/papers_kept.json]

`small` measures again what takes seconds (Tony-900, the Porto study on simulated trips, DP-ANI, plausible traces, the taxi data
of DP-Loc) and quotes the trained networks from the file of kept figures, with the date they were taken. `full` takes more
repeats, and trains the networks itself (hours). Real data are read from DIR or MURMURATE_DATA; what needs an absent file is
listed as such. Nothing is fetched.

A number counts as reproduced within 10 % of the printed one; shares, similarities and divergences also within 0.05.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import papers_sections as sections

WITHIN = 0.10
WITHIN_SHARE = 0.05
CLASSES = ("reproduced", "reproduced under a stated reading", "not reproduced")


@dataclass(frozen=True)
class Row:
    """One printed number beside ours."""

    paper: str
    item: str
    """Table or figure."""
    setting: str
    printed: float
    found: float | None
    reading: str = ""
    """What the paper leaves open and we settled; empty where nothing had to be."""
    runs: int = 1
    share: bool = False
    """Whether the number is a share, similarity or divergence, for which 0.05 is near enough."""
    why: str = ""
    """What was tried where the number is not reproduced."""
    taken: str = ""
    """When kept figures were taken; empty for what was measured now."""

    @property
    def distance(self) -> str:
        if self.found is None:
            return ""
        return f"{self.found - self.printed:+.3f}" if self.share else f"{100 * (self.found / self.printed - 1):+.1f} %"

    @property
    def verdict(self) -> str:
        if self.found is None:
            return CLASSES[2]
        near = abs(self.found / self.printed - 1) <= WITHIN if self.printed else self.found == self.printed
        if near or (self.share and abs(self.found - self.printed) <= WITHIN_SHARE):
            return CLASSES[1] if self.reading else CLASSES[0]
        return CLASSES[2]


def counted(rows: list[Row]) -> list[tuple[str, list[int]]]:
    """Numbers in each class, for each paper and in all."""
    papers = list(dict.fromkeys(row.paper for row in rows))
    table = [(paper, [sum(r.paper == paper and r.verdict == c for r in rows) for c in CLASSES]) for paper in papers]
    return [*table, ("all", [sum(counts[k] for _, counts in table) for k in range(len(CLASSES))])]


def write(rows: list[Row], figures: list[sections.Figure], path: Path, size: str) -> None:
    import jinja2

    from murmurate import __version__
    from murmurate.report.render import TEMPLATES, write_page

    loader = jinja2.FileSystemLoader([str(Path(__file__).parent), str(TEMPLATES)])
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals["version"] = __version__
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.paper, row.item), []).append(row)
    text = environment.get_template("papers.html.j2").render(
        groups=groups, counts=counted(rows), classes=CLASSES, figures=figures, size=size
    )
    write_page(path, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--html", type=Path, default=Path("papers.html"))
    parser.add_argument("--data", type=Path, default=os.environ.get("MURMURATE_DATA"))
    parser.add_argument("--kept", type=Path, default=Path(__file__).with_name("papers_kept.json"))
    given = parser.parse_args()
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(given.data) if given.data else beside if beside.is_dir() else None
    kept = json.loads(given.kept.read_text())
    rows: list[Row] = []
    figures: list[sections.Figure] = []
    for make in sections.ALL:
        found = make(folder, given.size == "full", kept)
        rows += [Row(**row) for row in found.rows]
        figures += found.figures
        print(f"{make.__name__}: {len(found.rows)} printed numbers", flush=True)
    write(rows, figures, given.html, given.size)
    for paper, counts in counted(rows):
        print(f"{paper:45}" + "".join(f"{count:5} {name};" for count, name in zip(counts, CLASSES, strict=True)))
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"{given.html} written; {sum(u.ru_utime + u.ru_stime for u in usage):.0f} CPU s")


if __name__ == "__main__":
    main()
