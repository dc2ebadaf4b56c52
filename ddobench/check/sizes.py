"""Small specifications for the checks: few rows, few variables, a tiny budget."""

from collections.abc import Sequence
from itertools import product

from ddobench.check.subject import Subject
from ddobench.cli.composition import specify_points
from ddobench.errors import UsageError

_D, _N = "d=7", "n=60"  # a task that refuses them is examined at the sizes of its own file
_QUICK = ("budget=tiny", "device=cpu")


def compose_small(words: Sequence[str]) -> Subject:
    """Return the smallest subject of these overrides that can be built; what is typed stays."""
    typed = {word.partition("=")[0] for word in words}
    quick = [word for word in _QUICK if word.partition("=")[0] not in typed]
    refusals: list[UsageError] = []
    for sizes in product(*([word, ""] for word in (_D, _N) if word.partition("=")[0] not in typed)):
        try:
            (spec,) = specify_points([[*words, *quick, *filter(None, sizes)]])
            spec.build()
        except UsageError as error:
            refusals.append(error)
        else:
            return Subject(spec)
    raise refusals[-1]
