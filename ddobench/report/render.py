"""Renders figures to files, on several cores where there are many."""

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from types import ModuleType

from ddobench.progress import track
from ddobench.report.figures.figure import FORMATS, Figure

log = logging.getLogger(__name__)

_FEW = 8  # figures that are rendered before another process is up
_MOST_WORKERS = 8


def render_all(
    figures: Iterable[Figure], formats: Sequence[str] = FORMATS, workers: int | None = None
) -> dict[tuple[str, str], bytes]:
    """Return the bytes of every figure in every format, by name and format."""
    items = list(figures)
    count = _count_cores() if workers is None else workers
    draw = partial(render, formats=formats)
    if count < 2 or len(items) <= _FEW:
        files = [draw(figure) for figure in track(items, "drawing figures")]
    else:
        files = _render_in_workers(items, draw, count)
    return {(figure.name, end): content for figure, own in zip(items, files, strict=True)
            for end, content in own.items()}  # fmt: skip


def render(figure: Figure, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of one figure by format."""
    return {ending: figure.render(ending) for ending in formats}


def _render_in_workers(
    items: Sequence[Figure], draw: "partial[dict[str, bytes]]", count: int
) -> list[dict[str, bytes]]:
    """Draw in new processes, as copies of this one would share its open font files."""
    try:
        spawn = get_context("spawn")
        with ProcessPoolExecutor(min(count, _MOST_WORKERS), mp_context=spawn) as pool:
            with _without_script():
                found = pool.map(draw, items, chunksize=2)
            return list(track(found, "drawing figures", total=len(items)))
    except BrokenProcessPool:
        log.warning("a process that draws figures was lost; drawing all of them in one")
        return [draw(figure) for figure in track(items, "drawing figures")]


@contextmanager
def _without_script() -> Iterator[None]:
    """Keep processes that are started meanwhile from running the script of this one again."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
