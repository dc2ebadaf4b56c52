"""Which portraits of the tasks a report shows: one for every task and variant."""

from collections.abc import Iterable, Iterator

from ddobench.store.records import Portrait

_TELLING = 7  # dimensions from which a graph shows its pattern


def choose_portraits(portraits: Iterable[Portrait]) -> list[Portrait]:
    """Take the smallest dimension that shows the pattern, with the most rows, of each variant.

    They come by task, the plainest variant first.
    """
    chosen: dict[tuple[str, str], Portrait] = {}
    for portrait in sorted(portraits, key=preference):
        chosen.setdefault((portrait.task, portrait.task_variant), portrait)
    return [chosen[key] for key in sorted(chosen)]


def preference(portrait: Portrait) -> tuple[bool, int, int, int]:
    """Return a key by which the most telling portrait comes first."""
    small = portrait.d < _TELLING
    return small, -portrait.d if small else portrait.d, -portrait.n, portrait.seed


def name_portrait(portrait: Portrait) -> str:
    """Name the task, variant and dimension of a portrait."""
    return ", ".join(filter(None, [portrait.task, portrait.task_variant, f"d = {portrait.d}"]))


def coordinate_tables(portrait: Portrait) -> Iterator[tuple[str, list[list[float]]]]:
    """Yield what to call the designs of a portrait and their first coordinates."""
    if portrait.hidden is not None and portrait.hidden != portrait.observed:
        yield "hidden", portrait.hidden
    yield "observed", portrait.observed
