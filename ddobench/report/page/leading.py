"""Which figures lead: one above all, and a few more; all others are for those who look further."""

from collections.abc import Sequence

from ddobench.report.figures.figure import Figure

MOST = 10
# Kinds of figures by how soon a reader wants them, as their names begin; others do not lead.
KINDS = (
    *("headline", "share", "rows", "bump", "noise", "controls", "regret", "invalid", "units"),
    *("confidence", "ranks", "value"),
)


def choose_leading(figures: Sequence[Figure], most: int = MOST) -> list[Figure]:
    """Return the figures that lead, at most so many, the headline first.

    Every kind has its turn before one has its second; within a kind more methods come first, then
    more numbers. A task whose shares of the optimum lead comes last in figures of regret.
    """
    turns: list[tuple[int, int, Figure]] = []
    shown: set[str] = set()  # tasks whose shares lead
    for place, kind in enumerate(KINDS):
        own = [figure for figure in figures if _kind(figure) == kind]
        own.sort(key=_sort_key)
        if kind == "regret":
            own.sort(key=lambda figure: figure.task in shown)
        if kind == "share":
            shown |= {figure.task for figure in own[:1]}
        turns += [(turn, place, figure) for turn, figure in enumerate(own)]
    turns.sort(key=lambda item: item[:2])
    return [figure for _, _, figure in turns[:most]]


def _sort_key(figure: Figure) -> tuple[int, int, str]:
    methods = figure.data["method"].nunique() if "method" in figure.data else 0
    return -methods, -len(figure.data), figure.name


def _kind(figure: Figure) -> str:
    return figure.name.split("-")[0]
