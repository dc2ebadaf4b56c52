"""The command line of one's own rows: `python -m ddobench.propose table.csv --target y`.

The package has a function of the same name, `ddobench.propose`, and importing this module puts the
module in its place. So the module can be called too, and both names mean the same in any order.
"""

import sys
from types import ModuleType

from ddobench.proposing.command_line import main
from ddobench.proposing.propose import propose


class _Callable(ModuleType):
    """A module that proposes when it is called."""

    __call__ = staticmethod(propose)


if __name__ == "__main__":
    sys.exit(main())
sys.modules[__name__].__class__ = _Callable
