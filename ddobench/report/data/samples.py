"""What a caption says about the sample behind a figure."""

import pandas as pd

from ddobench.report.data.report_data import ReportData
from ddobench.report.tables.columns import CELL, LOST, SERIES
from ddobench.report.tables.styles import explain_signs
from ddobench.stats.samples import FEW


def describe_sample(
    stored: ReportData, points: pd.DataFrame, per: str = "method and d", *, signs: bool = True
) -> list[str]:
    """Say how many seeds were averaged, which are lost, and which methods know too much."""
    cells = points[[*CELL, *SERIES]].drop_duplicates()
    scores = stored.scores.merge(cells, on=[*CELL, *SERIES])
    scored = scores.loc[scores["seeds"] > 0, "seeds"]
    if scored.empty:
        return []
    parts = [count_seeds(int(scored.min()), int(scored.max()), per)]
    parts += describe_hollow(scores)
    if not signs:
        return parts
    keys = set(cells[["task", *SERIES]].itertuples(index=False, name=None))
    return parts + [f"{note}." for note in explain_signs(stored.styles[k] for k in keys)]


def describe_hollow(scores: pd.DataFrame) -> list[str]:
    """Say what hollow markers are, if rows of scores have any."""
    lost = scores[LOST].sum()
    if not lost.sum():
        return []
    said = ", ".join(f"{count} {name}" for name, count in lost.items() if count)
    return [f"Hollow markers have fewer seeds than most methods there ({said} in all)."]


def count_seeds(fewest: int, most: int, per: str = "method and d") -> str:
    """Say how large a sample is, and that it is small where it is."""
    seeds = f"{most}" if fewest == most else f"{fewest} to {most}"
    noun = "seed" if fewest == most == 1 else "seeds"
    small = ", a small sample" if fewest < FEW else ""
    return f"{seeds} {noun} per {per}{small}."


def lost_seeds(stored: ReportData) -> set[tuple[object, ...]]:
    """Return the cells and series whose mean lacks seeds that were tried or most others have."""
    scores = stored.scores
    short = scores[scores[LOST].sum(axis=1) > 0]
    return set(short[[*CELL, *SERIES]].itertuples(index=False, name=None))
