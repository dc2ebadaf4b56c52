"""The one exception a user is meant to read: expected, got, remedy, in one sentence."""


class UsageError(ValueError):
    """The request cannot be carried out as written; the message says what to write instead."""


def check_whole(name: str, value: object, minimum: int, remedy: str = "") -> None:
    """Raise unless `value` is a whole number of at least `minimum`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < minimum:  # type: ignore[operator]
        hint = f"; {remedy}" if remedy else ""
        raise UsageError(
            f"{name} must be a whole number of at least {minimum}, got {value!r}{hint}"
        )


def check_one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless `value` is one of `choices`."""
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
