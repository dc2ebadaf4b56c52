"""New designs for a user's rows: read, fitted, proposed, and judged by how far to trust them.

`ddobench.propose` is the name of this package, so that `python -m ddobench.propose` runs, and of
the function `ddobench.propose(x, y)`. Importing the package puts it in the place of the function;
therefore the package can be called, and does the same.
"""

import sys
from types import ModuleType

from ddobench.propose.proposals import propose

__all__ = ["propose"]


class _CallablePackage(ModuleType):
    __call__ = staticmethod(propose)


sys.modules[__name__].__class__ = _CallablePackage
