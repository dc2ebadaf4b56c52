"""ddobench: given only a table of designs and values, which method proposes the best new designs?

The Python interface: `run` runs (or finds stored), `load` gives one row per stored run and
`load_curves` one row per run and iteration.
"""

from typing import TYPE_CHECKING, Any

from ddobench.determinism import request_stable_products

if TYPE_CHECKING:
    from ddobench.api import load, load_curves, run

__all__ = ["load", "load_curves", "run"]

request_stable_products()


def __getattr__(name: str) -> Any:
    """Import the interface on first use: the command line must start without pandas and torch."""
    if name in __all__:
        from ddobench import api

        return getattr(api, name)
    raise AttributeError(f"module 'ddobench' has no attribute {name!r}")
