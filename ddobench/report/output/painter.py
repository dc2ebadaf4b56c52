"""A process that renders drawings for another: `python -m ddobench.report.output.painter`.

It reads pickled drawings from its input and writes what became of each to its output: the bytes of
the files by format, as its arguments name them, or None if the drawing cannot be rendered, and once
at first that it is ready.
Pickles pass only between a report and the processes it started itself; none is ever read from disk.
"""

import pickle
import sys
from typing import Any

from ddobench.report.figures.figure import render_drawing


def main() -> None:
    """Render until there is nothing more to read."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever is printed must not be taken for an answer
    _answer(target, "ready")
    while True:
        try:
            data = pickle.load(source)
        except EOFError:
            return
        try:
            drawing = pickle.loads(data)
            _answer(target, {ending: render_drawing(drawing, ending) for ending in sys.argv[1:]})
        except Exception:  # the process that asked meets the same error and tells it
            _answer(target, None)


def _answer(target: Any, answer: object) -> None:
    pickle.dump(answer, target)
    target.flush()


if __name__ == "__main__":
    main()
