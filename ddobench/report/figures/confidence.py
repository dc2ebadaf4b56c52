"""How sure a discovered edge must be: the scores of a method against the level of its test."""

import json
from collections.abc import Iterator, Mapping
from math import comb
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from ddobench.report.data.commands import join_commands
from ddobench.report.data.details import climbing_runs, read_details, stage_settings
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import count_seeds
from ddobench.report.figures.doing_nothing import BEST_VISIBLE
from ddobench.report.figures.drawing import FAINT, INK, LOOK, PALE, blank_drawing, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.panels import WIDTH, freeze_layout
from ddobench.report.tables.columns import CELL
from ddobench.report.tables.formats import INTERVAL_RULE, name_runs
from ddobench.report.tables.styles import Style
from ddobench.scores import BEST_ORACLE, FINAL_MODEL, INVALID_FINAL
from ddobench.stats.samples import mean_interval

_PANELS = {
    "value [sd of visible values]": {
        FINAL_MODEL.name: "final, ranked by the method",
        BEST_ORACLE.name: "best iteration, by the oracle",
    },
    "invalid designs at the end [%]": {INVALID_FINAL.name: "invalid designs"},
    "number": {"edges": "edges", "cliques": "maximal cliques"},
}
_ROWS = [score for scores in _PANELS.values() for score in scores]
_SCORES = [FINAL_MODEL, BEST_ORACLE, INVALID_FINAL]  # the rows that are scores of a run
_SCALES = {score.name: score.unit.scale for score in _SCORES}
_PUBLISHED = "chain"  # the task of the published sweep
_MOST_FILES = 200
_TEXT = (
    "A pair of codes is an edge where the test of independence rejects at level \u03b1: the higher "
    "the confidence 1\u00a0\u2212\u00a0\u03b1, the fewer the edges. Marks are means over seeds "
    f"with 95\u00a0% intervals ({INTERVAL_RULE}), small dots the seeds; levels are evenly spaced. "
    "The best iteration is an oracle's choice. Dotted: the best visible design, which is doing "
    "nothing, and the number of edges that chance alone would give."
)


def scores_by_confidence(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw every set of runs that differ in nothing but the level of the test."""
    runs = climbing_runs(stored)
    runs = runs.assign(alpha=[_level(stored.configs.get(digest, {})) for digest in runs["digest"]])
    tested = runs[runs["alpha"].notna()]
    rest = [_all_but_level(stored.configs[digest]) for digest in tested["digest"]]
    drawn = False
    for _, sweep in tested.groupby([*(tested[name] for name in CELL), rest], sort=True):
        if len(set(sweep["alpha"])) > 1:
            drawn = True
            yield _figure(stored, sweep)
    if not drawn and _PUBLISHED in set(tested["task"]):
        yield Absence(
            title=f"Scores against confidence: {_PUBLISHED}",
            task=_PUBLISHED,
            reason="all stored runs test their edges at the same level",
            remedy="python -m ddobench -m experiment=confidence",
        )


def _level(config: Mapping[str, Any]) -> float:
    """Return the level of the test of edges, NaN without one."""
    level = stage_settings(config, "graph").get("alpha")
    return float(level) if isinstance(level, int | float) else float("nan")


def _all_but_level(config: Mapping[str, Any]) -> str:
    """Spell a configuration that has a level without it."""
    method = config["method"]
    graph = {name: value for name, value in method["graph"].items() if name != "alpha"}
    return json.dumps({**config, "method": {**method, "graph": graph}}, sort_keys=True, default=str)


def _figure(stored: ReportData, sweep: pd.DataFrame) -> Figure:
    seeds = _seed_table(stored, sweep)
    points = confidence_table(seeds)
    first = sweep.iloc[0]  # the plainest
    style = stored.styles[first["task"], first["method"], first["method_variant"]]
    name = name_runs(first, "n", "d")
    counts = seeds.groupby("alpha")["seed"].nunique()
    sample = count_seeds(int(counts.min()), int(counts.max()), "level")
    return Figure(
        name=row_stem("confidence", first, "d", "n", method=str(first["method"])),
        title=f"Scores against confidence: {name}",
        caption=f"{style.label}. {_TEXT} {sample}",
        task=str(first["task"]),
        data=points,
        commands=join_commands(sweep["command"]),
        drawing=_draw(points, seeds, style, f"{name}, {style.label}"),
        subject="methods",
    )  # fmt: skip


def _seed_table(stored: ReportData, sweep: pd.DataFrame) -> pd.DataFrame:
    """Return one row per level and seed with every score; counts are NaN where not stored."""
    runs = sweep.sort_values("finished").drop_duplicates(["alpha", "seed"], keep="last")
    rows = []
    for place, (_, run) in enumerate(runs.iterrows()):
        told = read_details(stored, run) if place < _MOST_FILES else {}
        codes = len(told.get("pseudo_hessian") or ())
        rows.append({
            **run[["alpha", "seed", "best_visible", *_SCALES]],
            "edges": len(told["edges"]) if "edges" in told else np.nan,
            "cliques": told.get("cliques", np.nan),
            "edges_by_chance": run["alpha"] * comb(codes, 2) if codes else np.nan,
        })  # fmt: skip
    return pd.DataFrame(rows).sort_values(["alpha", "seed"], ascending=[False, True])


def confidence_table(seeds: pd.DataFrame) -> pd.DataFrame:
    """Return one row per level and score, the lowest confidence first."""
    rows = []
    for alpha, own in seeds.groupby("alpha", sort=False):
        for score in _ROWS:
            values = own[score].dropna().astype(float)
            row = {"confidence": round(1 - float(str(alpha)), 12), "alpha": alpha, "score": score,
                   "seeds": len(values), "mean": np.nan, "low": np.nan, "high": np.nan,
                   "by_chance": own["edges_by_chance"].mean() if score == "edges" else np.nan,
                   "by_seed": " ".join(map(repr, values.tolist()))}  # fmt: skip
            if len(values):
                interval = mean_interval(values)
                row |= {"mean": values.mean(), "low": interval.low, "high": interval.high}
            rows.append(row)
    return pd.DataFrame(rows)


def _draw(points: pd.DataFrame, seeds: pd.DataFrame, style: Style, name: str) -> Drawing:
    levels = list(dict.fromkeys(points["alpha"]))
    with mpl.rc_context(LOOK):
        title = wrap_text(name, 90)
        drawing = blank_drawing(WIDTH, 3.0 + 0.17 * title.count("\n"))
        drawing.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
        drawing.suptitle(title, x=0.012, ha="left", fontsize=9.5, parse_math=False)
        panels = drawing.subplots(1, len(_PANELS), squeeze=False)[0]
        nothing = float(seeds.drop_duplicates("seed")["best_visible"].mean())
        panels[0].set_ylim(*limits_around([0.0, nothing, *_heights(points, seeds, panel=0)]))
        panels[0].axhline(nothing, color=BEST_VISIBLE.color, linewidth=1.1,
                          dashes=BEST_VISIBLE.dashes, label=BEST_VISIBLE.label)  # fmt: skip
        panels[1].set_ylim(-4, 104)
        panels[2].set_ylim(0, limits_around([0.0, 1.0, *_heights(points, seeds, panel=2)])[1])
        for axes, (unit, scores) in zip(panels, _PANELS.items(), strict=True):
            axes.grid(axis="y", color=PALE, linewidth=0.6)
            axes.set_axisbelow(True)
            axes.set_ylabel(unit, fontsize=8.5)
            axes.set_xlabel("confidence $1 - \\alpha$", fontsize=8.5)
            axes.tick_params(labelsize=8)
            axes.set_xticks(range(len(levels)), [f"{1 - a:.6g}".lstrip("0") for a in levels])
            axes.set_xlim(-0.4, len(levels) - 0.6)
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            for second, (score, label) in enumerate(scores.items()):
                scale = _SCALES.get(score, 1)
                own = points[points["score"] == score]
                shift = 0.24 * second - 0.12 * (len(scores) - 1)
                _draw_score(axes, own, seeds, scale, style, label, shift)
            if "edges" in scores:
                chance = points.loc[points["score"] == "edges", "by_chance"]
                axes.plot(range(len(levels)), chance, color=FAINT, linewidth=1.1,
                          dashes=(1.5, 1.5), label="edges by chance")  # fmt: skip
            if len(scores) > 1:
                axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), frameon=False,
                            fontsize=7.5, handlelength=2.4)  # fmt: skip
        panels[0].axhline(0, color=INK, linewidth=0.7, zorder=1)
        freeze_layout(drawing)
    return drawing


def _heights(points: pd.DataFrame, seeds: pd.DataFrame, panel: int) -> list[float]:
    """Return all that is drawn in a panel."""
    scores = list(list(_PANELS.values())[panel])
    own = points[points["score"].isin(scores)]
    tables = (own[["mean", "low", "high", "by_chance"]], seeds[scores])
    return [float(value) for table in tables for value in table.to_numpy(dtype=float).ravel()]


def _draw_score(
    axes: Axes, points: pd.DataFrame, seeds: pd.DataFrame, scale: float, style: Style, label: str,
    shift: float,
) -> None:  # fmt: skip
    """Draw one score, its marks shifted to the side; those shifted to the right are hollow."""
    hollow = shift > 0
    places = np.arange(len(points))
    mean, low, high = (scale * points[part].to_numpy(dtype=float)
                       for part in ("mean", "low", "high"))  # fmt: skip
    x = seeds["alpha"].map(dict(zip(points["alpha"], places, strict=True)))
    axes.plot(x + (2 * shift or 0.16), scale * seeds[points["score"].iloc[0]], linestyle="none",
              marker="o", markersize=2.8, alpha=0.4, markeredgewidth=0,
              markerfacecolor=style.color, zorder=2)  # fmt: skip
    axes.vlines(places + shift, low, high, color=style.color, linewidth=1.4, zorder=3)
    axes.plot(places + shift, mean, color=style.color, linewidth=1.2, zorder=4, label=label,
              dashes=(4, 1.6) if hollow else (None, None), marker="s" if hollow else "o",
              markersize=5.5, markerfacecolor="white" if hollow else style.color,
              markeredgecolor=style.color if hollow else "white",
              markeredgewidth=1.1 if hollow else 0.6)  # fmt: skip
