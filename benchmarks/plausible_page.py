"""What a run of plausible_paper.py found, printed as it comes and collected into one page without scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from murmurate.report.lives import round_above

ROLES = ("s1", "s2", "s3", "s4", "s5", "s6")


@dataclass
class Section:
    title: str
    maps: list[dict[str, Any]] = field(default_factory=list)
    charts: list[dict[str, Any]] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Page:
    sections: list[Section] = field(default_factory=list)

    def section(self, title: str) -> None:
        print(f"\n# {title}", flush=True)
        self.sections.append(Section(title))

    def table(self, title: str, rows: list[tuple[object, ...]]) -> None:
        text = [tuple(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row) for row in rows]
        print(f"\n## {title}")
        for row in text:
            print("| " + " | ".join(row) + " |", flush=True)
        self.sections[-1].tables.append({"title": title, "rows": text})

    def histogram(self, title: str, x_label: str, values: dict[str, np.ndarray], words: str = "") -> None:
        """Shares of values between 0 and 1, of several sets."""
        edges = np.linspace(0, 1, 37)
        lines = {}
        for name, part in values.items():
            share = 100 * np.histogram(part, edges)[0] / len(part)
            lines[name] = (np.repeat(edges, 2)[1:-1], np.repeat(share, 2))
        means = ", ".join(f"{name} {part.mean():.2f}" for name, part in values.items())
        self.chart(title, x_label, "% of pairs", lines, words or f"Mean: {means}.", x_range=(0.0, 1.0))

    def chart(
        self,
        title: str,
        x_label: str,
        y_label: str,
        lines: dict[str, tuple[Any, Any]],
        words: str = "",
        *,
        x_range: tuple[float, float] | None = None,
        top: float | None = None,
        dots: bool = False,
    ) -> None:
        """Lines by name; one called chance is dashed."""
        across = np.concatenate([np.asarray(x, dtype=float) for x, _ in lines.values()])
        up = np.concatenate([np.asarray(y, dtype=float) for _, y in lines.values()])
        left, right = x_range or (0.0, round_above(float(across.max())))
        highest = top or round_above(float(up.max()))

        def at(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
            return 46 + (np.asarray(x) - left) / (right - left) * 344, 196 - np.asarray(y) / highest * 184

        drawn = []
        for number, (name, (x, y)) in enumerate(lines.items()):
            places = [(round(float(a), 1), round(float(b), 1)) for a, b in zip(*at(x, y), strict=True)]
            role = "chance" if name.startswith("chance") else ROLES[number % len(ROLES)]
            points = " ".join(f"{a},{b}" for a, b in places)
            drawn.append({"name": name, "role": role, "points": points, "dots": places if dots else []})
        ticks = np.linspace(left, right, 6), np.linspace(0, highest, 6)
        self.sections[-1].charts.append(
            {
                "title": title,
                "words": words,
                "x_label": x_label,
                "y_label": y_label,
                "lines": drawn,
                "x_ticks": [(round(float(a)), f"{v:.3g}") for a, v in zip(at(ticks[0], ticks[0])[0], ticks[0], strict=True)],
                "y_ticks": [(round(float(b)), f"{v:.3g}") for b, v in zip(at(ticks[1], ticks[1])[1], ticks[1], strict=True)],
            }
        )

    def dots(self, title: str, words: str, *, lat: np.ndarray, lng: np.ndarray, size: np.ndarray, classes: np.ndarray) -> None:
        """Places as dots of an area, coloured by class."""
        squeeze = float(np.cos(np.radians(lat.mean())))
        x, y = (lng - lng.min()) * squeeze, lat.max() - lat
        scale = 960 / max(float(np.ptp(x)), float(np.ptp(y)))
        hue = 360 * classes / (classes.max() + 1)
        drawn = [
            (round(20 + a * scale), round(20 + b * scale), round(4 + 26 * c, 1), f"hsl({h:.0f} 65% 50%)")
            for a, b, c, h in zip(x, y, np.sqrt(size / size.max()), hue, strict=True)
        ]
        width, height = (round(float(np.ptp(part)) * scale) + 40 for part in (x, y))
        self.sections[-1].maps.append({"title": title, "words": words, "width": width, "height": height, "dots": drawn})

    def write(self, path: Path, about: str) -> None:
        import jinja2

        from murmurate import __version__
        from murmurate.report.render import TEMPLATES, write_page

        loader = jinja2.FileSystemLoader([str(Path(__file__).parent), str(TEMPLATES)])
        environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
        environment.globals["version"] = __version__
        write_page(path, environment.get_template("plausible_paper.html.j2").render(sections=self.sections, about=about))
