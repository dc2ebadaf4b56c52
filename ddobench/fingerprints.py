"""The identity of a function or an object of a user: what it would do again, as a digest.

It covers the compiled code of a function, its defaults, the values that it closes over, and the
functions, classes and values of its own package that it names; of libraries only names count. So
comments and layout do not matter, a changed constant or helper does. The compiled code differs
between minor versions of Python. What has no content that can be read is refused: a generator of
random numbers, an open file, a compiled object.
"""

import dis
import functools
import hashlib
import json
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from ddobench.errors import UsageError, is_library

_PLAIN = (type(None), bool, int, float, complex, str, bytes, Path, np.generic, np.dtype, range)
_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
_TYPING = (types.GenericAlias, types.UnionType)


def fingerprint(thing: object, what: str) -> str:
    """Return a digest of what a thing does, or raise if it cannot be known; `what` names it."""
    try:
        content = _Reader(_home_of(thing)).read(thing, what)
    except RecursionError:
        raise UsageError(_refuse(what, what, thing)) from None
    text = json.dumps([sys.version_info[:2], content], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _refuse(what: str, path: str, thing: object) -> str:
    part = "it is" if path == what else f"{path},"
    return (
        f"{what} cannot be identified: {part} a {type(thing).__name__}, whose content cannot be "
        "read; give version=1, and another number whenever it changes"
    )


def _home_of(thing: Any) -> str:
    """Return the package of a function, "" for other things: classes of libraries have names."""
    while isinstance(thing, functools.partial | types.MethodType):
        thing = thing.func if isinstance(thing, functools.partial) else thing.__func__
    return str(thing.__module__).partition(".")[0] if isinstance(thing, types.FunctionType) else ""


class _Reader:
    """Turns things into plain lists and texts; a thing within itself is named by its place."""

    def __init__(self, home: str) -> None:
        self.home = home  # the package that a function belongs to
        self.seen: dict[int, int] = {}
        self.kept: list[object] = []  # so that no other object gets the same id

    def read(self, thing: object, what: str, path: str = "") -> Any:
        """Return the content of a thing; `path` says where it was found."""
        if isinstance(thing, Enum):
            return ["enum", type(thing).__qualname__, thing.name]
        if isinstance(thing, (*_PLAIN, *_TYPING)) or type(thing).__module__ == "typing":
            return [type(thing).__name__, repr(thing)]
        if id(thing) in self.seen:
            return ["again", self.seen[id(thing)]]
        self.seen[id(thing)] = len(self.seen)
        self.kept.append(thing)
        below = functools.partial(self._below, what, path or what)
        if isinstance(thing, types.ModuleType):
            return ["module", thing.__name__]
        if isinstance(thing, list | tuple):
            return [type(thing).__name__, [below(one, f"[{i}]") for i, one in enumerate(thing)]]
        if isinstance(thing, set | frozenset):
            return ["set", sorted(json.dumps(below(one, "")) for one in thing)]
        if isinstance(thing, Mapping):
            pairs = [[below(k, ""), below(v, f"[{k!r}]")] for k, v in thing.items()]
            return ["mapping", sorted(pairs, key=json.dumps)]
        if isinstance(thing, types.CodeType):
            return _read_code(thing, below)
        if isinstance(thing, types.FunctionType):
            return _named(thing) if self._is_foreign(thing) else _read_function(thing, below)
        if isinstance(thing, types.MethodType):
            return ["bound", below(thing.__func__, ""), below(thing.__self__, "")]
        if isinstance(thing, functools.partial):
            parts = (thing.func, thing.args, thing.keywords)
            return ["partial", [below(part, "") for part in parts]]
        if isinstance(thing, staticmethod | classmethod):
            return [type(thing).__name__, below(thing.__func__, "")]
        if isinstance(thing, property):
            return ["property", [below(one, "") for one in (thing.fget, thing.fset)]]
        if isinstance(thing, type):
            return _named(thing) if self._is_foreign(thing) else _read_class(thing, below)
        if isinstance(thing, types.BuiltinFunctionType | types.MethodWrapperType | np.ufunc):
            owner = getattr(thing, "__self__", None)
            free = owner is None or isinstance(owner, types.ModuleType | type)
            return [thing.__name__, _named(thing) if free else below(owner, "")]
        if hasattr(thing, "__array__") and hasattr(thing, "dtype"):  # NumPy, torch, pandas
            return _read_array(thing)
        if hasattr(thing, "to_numpy") and hasattr(thing, "columns"):  # a frame
            return ["frame", below([*thing.columns], ""), _read_array(thing.to_numpy())]
        if hasattr(thing, "get_params"):  # the settings of an estimator, whether fitted or not
            return ["estimator", below(type(thing), ""), below(thing.get_params(), "")]
        if hasattr(thing, "__dict__") and not _is_compiled(type(thing)):
            return ["object", below(type(thing), ""), below(vars(thing), "")]
        raise UsageError(_refuse(what, path or what, thing))

    def _below(self, what: str, path: str, thing: object, more: str) -> Any:
        return self.read(thing, what, path + more)

    def _is_foreign(self, thing: types.FunctionType | type) -> bool:
        """Return whether a function or class belongs to another library, or to Python."""
        if thing.__module__ and thing.__module__.partition(".")[0] == self.home:
            return False
        if isinstance(thing, types.FunctionType):
            return is_library(Path(thing.__code__.co_filename))
        file = getattr(sys.modules.get(thing.__module__), "__file__", None)
        return thing.__module__ != "__main__" and (file is None or is_library(Path(file)))


Below = Callable[[object, str], Any]


def _read_function(function: types.FunctionType, below: Below) -> Any:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    named = {
        name: function.__globals__[name]
        for name in sorted(set(_global_names(function.__code__)))
        if name in function.__globals__
    }
    constants = function.__code__.co_consts
    if function.__doc__ is not None and constants[:1] == (function.__doc__,):
        constants = (None, *constants[1:])
    return [
        "function",
        below(function.__code__.replace(co_consts=constants), ""),
        below(function.__defaults__, ""),
        below(function.__kwdefaults__, ""),
        [[name, below(value, f" uses {name}")] for name, value in {**named, **closed}.items()],
    ]


def _is_compiled(kind: type) -> bool:
    """Return whether objects of a class have content that `vars` does not show."""
    modules = [sys.modules.get(base.__module__) for base in kind.__mro__ if base is not object]
    files = [str(getattr(one, "__file__", None) or "") for one in modules if one is not None]
    compiled = [one.__name__ in sys.builtin_module_names for one in modules if one is not None]
    return any(compiled) or any(not file.endswith(".py") for file in files if file)


def _is_filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:  # a function that is not defined yet
        return False
    return True


def _global_names(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _read_code(code: types.CodeType, below: Below) -> Any:
    constants = [below(constant, "") for constant in code.co_consts]
    names = [*code.co_names, "/", *code.co_varnames, "/", *code.co_freevars]
    return ["code", code.co_code.hex(), code.co_argcount, code.co_kwonlyargcount, names, constants]


def _read_class(kind: type, below: Below) -> Any:
    own = {name: value for name, value in vars(kind).items() if _is_content(name, value)}
    return [
        "class",
        [below(base, "") for base in kind.__bases__],
        [[name, below(value, f".{name}")] for name, value in sorted(own.items())],
    ]


def _is_content(name: str, value: object) -> bool:
    """Return whether an attribute of a class is written in it, not made by Python."""
    if isinstance(value, types.GetSetDescriptorType | types.MemberDescriptorType):
        return False
    special = name.startswith("__") and name.endswith("__")
    return name != "_abc_impl" and (not special or isinstance(value, types.FunctionType))


def _read_array(array: Any) -> Any:
    detached = array.detach().cpu() if hasattr(array, "detach") else array
    plain = np.ascontiguousarray(np.asarray(detached))
    content = repr(plain.tolist()).encode() if plain.dtype.hasobject else plain.tobytes()
    return ["array", str(plain.dtype), list(plain.shape), hashlib.sha256(content).hexdigest()]


def _named(thing: Any) -> list[str]:
    name = getattr(thing, "__qualname__", getattr(thing, "__name__", ""))
    return ["named", str(getattr(thing, "__module__", "")), str(name)]
