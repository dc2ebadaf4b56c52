"""Writers that are killed after some calls to the system, as by `kill -9`."""

import contextlib
import os
from typing import Any

import pytest


class Killed(BaseException):
    """The writer is no more."""


class Mortal:
    """A writer's calls to the system, until it is killed: from then on nothing happens."""

    CALLS = ("open", "write", "fsync", "replace", "unlink")

    def __init__(self, calls: int, patch: pytest.MonkeyPatch) -> None:
        self.left = calls
        self.handles: list[int] = []
        for name in self.CALLS:
            patch.setattr(os, name, self._unless_dead(name, getattr(os, name)))

    def _unless_dead(self, name: str, call: Any) -> Any:
        def perform(*arguments: Any, **options: Any) -> Any:
            if self.left <= 0:
                raise Killed
            self.left -= 1
            result = call(*arguments, **options)
            if name == "open":
                self.handles.append(result)
            return result

        return perform

    def close_files(self) -> None:
        """Close what the dead held open, as the system does."""
        for handle in self.handles:
            with contextlib.suppress(OSError):  # closed before it died
                os.close(handle)
