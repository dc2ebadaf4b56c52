"""What a class is called in digests and random streams: declared, never where its code lives.

Tasks, methods and their parts declare a short `name` and a whole `version`. A name stands in the
class itself: a subclass is another thing and needs one of its own; a version is inherited. A file
or a class may move and be renamed without orphaning a stored run; a new `version` retires them on
purpose.
"""


def declared_name(kind: type) -> str | None:
    """Return the name that a class declares itself, not one that it inherits."""
    name = vars(kind).get("name")
    return name if isinstance(name, str) and name else None


def name_of(kind: type) -> str:
    """Return the declared name; for a class without one, where it lives."""
    return declared_name(kind) or f"{kind.__module__}.{kind.__qualname__}"


def version_of(kind: type) -> int:
    """Return the version of a class, 1 unless it says otherwise."""
    return int(getattr(kind, "version", 1))
