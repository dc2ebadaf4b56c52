"""Turns the figures of a report into files, on several cores where there are many figures.

While this process draws, others render what is drawn already; then it helps them. They are new
processes, as copies would share its open font files and read glyphs from the wrong places.

A ProcessPoolExecutor of new processes would be shorter and gives the same bytes. Measured on the 39
figures of 135 runs, two busy cores, four pairs of runs: it takes 1.03 to 1.19 times the CPU time
and at best 1.16 times the wall time if this process helps, more if it does not. Its workers run the
script of the caller again unless that guards its main part, outlive a killed parent, and once one
is lost Python 3.11 fails on figures taken back from the pool to help.
"""

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Sequence
from threading import Condition, Thread
from typing import IO, cast

from ddobench.report.figures.figure import FORMATS, Absence, Figure

Rendered = dict[tuple[str, str], bytes]  # by the name of a figure and its format
Files = dict[str, bytes]  # by format
_FEW = 4  # figures that are rendered before another process is up
_MOST_PAINTERS = 7
_GONE = (OSError, EOFError, ValueError, pickle.UnpicklingError)  # what a lost process causes


def render_all(
    items: Iterable[Figure | Absence],
    painters: int | None = None,
    formats: Sequence[str] = FORMATS,
) -> tuple[list[Figure | Absence], Rendered]:
    """Draw the items and render the figures among them, with up to so many further processes.

    What these do not deliver is rendered here: an error looks as if they did not exist.
    """
    studio = _Studio(_spare_cores() if painters is None else painters, formats)
    drawn: list[Figure | Absence] = []
    try:
        for item in items:
            drawn.append(item)
            if isinstance(item, Figure):
                studio.add(item)
        done = studio.finish()
    finally:
        studio.close()
    figures = [item for item in drawn if isinstance(item, Figure)]
    return drawn, {
        (figure.name, ending): data
        for place, figure in enumerate(figures)
        for ending, data in done[place].items()
    }


class _Studio:
    """The figures to render, and who is at work on them."""

    def __init__(self, painters: int, formats: Sequence[str]) -> None:
        self.painters = painters
        self.formats = formats
        self.figures: list[Figure] = []
        self.done: dict[int, Files] = {}  # by the place of a figure
        self.offered: dict[int, bytes] = {}  # pickled drawings for whoever is free
        self.left: list[int] = []  # for this process only
        self.busy = 0  # painters with a figure
        self.changed = Condition()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.threads: list[Thread] = []

    def add(self, figure: Figure) -> None:
        """Have a figure rendered; painters are called once there is enough for them to do."""
        pickled = _pickle(figure) if self.painters else None
        with self.changed:
            place = len(self.figures)
            self.figures.append(figure)
            if pickled is None:
                self.left.append(place)
            else:
                self.offered[place] = pickled
            self.changed.notify_all()
        if len(self.offered) > _FEW and not self.processes:
            for _ in range(self.painters):
                self._call_painter()

    def finish(self) -> dict[int, Files]:
        """Render with the others until nothing is left."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.left or self.offered or not self.busy)
                if self.left:
                    place = self.left.pop()
                elif self.offered:
                    place, _ = self.offered.popitem()
                else:
                    return self.done
            figure = self.figures[place]
            self.done[place] = {ending: figure.render(ending) for ending in self.formats}

    def close(self) -> None:
        """Send the painters home."""
        with self.changed:
            self.offered.clear()
        for process in self.processes:
            process.kill()
        for thread in self.threads:
            thread.join()
        for process in self.processes:
            process.wait()

    def _call_painter(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "ddobench.report.output.painter", *self.formats],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for this process, which ends the others
        )
        self.processes.append(process)
        self.threads.append(Thread(target=self._supply, args=(process,), daemon=True))
        self.threads[-1].start()

    def _supply(self, process: "subprocess.Popen[bytes]") -> None:
        """Give a painter one figure after the other, until it is gone."""
        answers, questions = cast(IO[bytes], process.stdout), cast(IO[bytes], process.stdin)
        with contextlib.suppress(*_GONE), answers, questions:
            pickle.load(answers)  # it is ready
            while process.poll() is None:
                with self.changed:
                    if not self.changed.wait_for(lambda: self.offered, timeout=0.2):
                        continue
                    place = next(iter(self.offered))
                    pickled = self.offered.pop(place)
                    self.busy += 1
                files: Files | None = None
                try:
                    pickle.dump(pickled, questions)
                    questions.flush()
                    files = pickle.load(answers)
                finally:
                    with self.changed:
                        self.busy -= 1
                        if files is None:
                            self.left.append(place)
                        else:
                            self.done[place] = files
                        self.changed.notify_all()


def _pickle(figure: Figure) -> bytes | None:
    """Return a drawing that can be sent, None if it holds something that cannot."""
    try:
        return pickle.dumps(figure.drawing, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None


def _spare_cores() -> int:
    """Return how many cores this process may use besides its own."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(cores - 1, _MOST_PAINTERS)
