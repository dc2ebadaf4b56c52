"""The name and version of a class in digests and random streams: declared, not its module path.

Tasks, methods and their parts declare a short `name` and an integer `version`. A name is not
inherited: a subclass needs one of its own. A version is inherited. Files and classes may be moved
and renamed, and stored runs are still found; a new `version` retires them on purpose.
"""

import ast
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Identity:
    """The name and the version of a class."""

    name: str
    version: int


def identify(kind: type) -> Identity:
    """Return the declared name, or the module path of a class without one, and the version."""
    name = declared_name(kind) or f"{kind.__module__}.{kind.__qualname__}"
    return Identity(name, int(getattr(kind, "version", 1)))


def declared_name(kind: type) -> str | None:
    """Return the name that a class declares itself, not one that it inherits."""
    name = vars(kind).get("name")
    return name if isinstance(name, str) and name else None


@cache
def read_identity(address: str) -> Identity | None:
    """Return the identity of a class from its source alone, None if that is not enough.

    Importing a class costs seconds (it needs PyTorch); knowing what is stored already must not.
    """
    try:
        module, kind = _find_class(address)
        name = _constants(kind).get("name")
        version = _read_version(module, kind)
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
    return Identity(name if isinstance(name, str) and name else address, version)


def _find_class(address: str) -> tuple[str, ast.ClassDef]:
    module, _, name = address.rpartition(".")
    for node in _parse(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, node
    raise ImportError(f"{module} has no class {name}")


def _constants(kind: ast.ClassDef) -> dict[str, object]:
    """Return the annotated constants in the body of a class."""
    return {
        node.target.id: node.value.value
        for node in kind.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.value, ast.Constant)
    }


def _read_version(module: str, kind: ast.ClassDef) -> int:
    """Return the version a class declares, or else inherits from its only base."""
    own = _constants(kind).get("version")
    if isinstance(own, int):
        return own
    if not kind.bases:
        return 1
    if len(kind.bases) != 1:
        raise ImportError(f"{kind.name} does not declare its version")
    return _read_version(*_find_class(_address_of(kind.bases[0], module)))


def _address_of(base: ast.expr, module: str) -> str:
    """Return the address of a base class that a module defines or imports by name."""
    if not isinstance(base, ast.Name):
        raise ImportError("a base class that is no plain name")
    for node in _parse(module).body:
        if isinstance(node, ast.ClassDef) and node.name == base.id:
            return f"{module}.{base.id}"
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == base.id:
                    return f"{node.module}.{alias.name}"
    raise ImportError(f"{module} does not import {base.id} by name")


@cache
def _parse(module: str) -> ast.Module:
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise ImportError(f"{module} has no source")
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
