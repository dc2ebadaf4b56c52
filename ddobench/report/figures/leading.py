"""Which series of a figure lead where there are too many: the best, the usual, doing nothing."""

from collections.abc import Mapping
from itertools import chain

import pandas as pd

from ddobench.report.data.curves import MOST_SERIES, series_of
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.drawing import MUTED
from ddobench.report.tables.columns import SERIES
from ddobench.report.tables.looks import NOTHING, REFERENCE, USUAL, role_of
from ddobench.report.tables.styles import Style

_BEST = 4  # series that lead by their rank alone

SeriesKey = tuple[str, str]  # method and variant


def lead_styles(
    stored: ReportData, points: pd.DataFrame, column: str, *, lower_is_better: bool = False,
    most: int = MOST_SERIES, within: str = "d",
) -> dict[SeriesKey, Style]:  # fmt: skip
    """Return the look of every series; of too many, those that do not lead share a muted one.

    `points` have a row for each series and size, with the number that ranks those of equal
    `within` in `column`.
    """
    task, keys = str(points["task"].iloc[0]), series_of(points)
    leading = leading_series(points, column, within, most, lower_is_better=lower_is_better)
    rest = len(keys) - len(leading)
    muted = Style("1 other" if rest == 1 else f"{rest} others", MUTED, "", (), ())
    styles = {key: stored.styles[task, *key] if key in leading else muted for key in keys}
    return dict(sorted(styles.items(), key=lambda item: item[1] == muted))


def leading_series(
    points: pd.DataFrame, column: str, within: str | list[str], most: int,
    *, lower_is_better: bool = False,
) -> list[SeriesKey]:  # fmt: skip
    """Return the series that lead, the best first: references, the best few, then usual ones."""
    rivals = points.groupby(within)[column]
    ranks = rivals.rank(ascending=lower_is_better) - 1  # from 0, the best, to 1 where all met
    ranks /= (rivals.transform("count") - 1).clip(lower=1)
    means = ranks.groupby([points[name] for name in SERIES]).mean().sort_values(kind="stable")
    ranked = [(str(method), str(variant)) for method, variant in means.index]
    if len(ranked) <= most:
        return ranked
    references, usual = (
        [key for key in ranked if not key[1] and role_of(key[0]) in roles]
        for roles in ((NOTHING, REFERENCE), (USUAL,))
    )
    others = [key for key in ranked if key not in references]
    wanted = list(dict.fromkeys(chain(references, others[:_BEST], usual, others)))[:most]
    return sorted(wanted, key=ranked.index)


def describe_muted(styles: Mapping[SeriesKey, Style]) -> list[str]:
    """Say what the muted lines are, if there are any."""
    count = sum(style.color == MUTED for style in styles.values())
    if not count:
        return []
    which = "One further series is" if count == 1 else f"{count} further series are"
    return [f"{which} grey; the tables have all."]
