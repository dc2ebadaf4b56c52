"""What a user may override: keys that exist, once each; of Hydra's own only those of a launcher.

Hydra itself lets any of its settings be overridden, and some of them write files elsewhere, call
any function or make a sweep run something else than it says.
"""

from collections.abc import Sequence

from ddobench import registry
from ddobench.errors import UsageError

_HYDRA = "hydra"
_LAUNCHER = ("hydra/launcher", "hydra.launcher.", "hydra.job.env_set.", "hydra.job.env_copy")
COMPLETION = ("install", "uninstall", "query")
SHELLS = ("bash", "zsh", "fish")


def check_overrides(words: Sequence[str], config_name: str) -> None:
    """Raise for a word that Hydra would take for more than a value of a key."""
    known, groups = registry.top_keys(config_name), registry.usual_choices(config_name)
    seen: dict[str, str] = {}
    for word in words:
        key = _key(word)
        if key in seen:
            raise UsageError(f"{key} is given twice, {seen[key]} and {word}; keep one")
        seen[key] = word
        top = key.split(".")[0].split("/")[0]
        if top == _HYDRA:
            _check_hydra(key, word)
        elif key in groups and word.partition("=")[2].lstrip().startswith(("[", "{")):
            raise UsageError(
                f"{key} takes one name, or several with -m, as in {key}=a,b; --help lists them"
            )
        elif word.startswith("+") and top not in known:
            raise UsageError(f"there is no key {key!r} to add; the keys are {', '.join(known)}")


def check_completion(words: Sequence[str]) -> None:
    """Raise unless one shell is to be served."""
    for word in words:
        deed, _, shell = word.partition("=")
        if deed in COMPLETION and shell in SHELLS and len(words) == 1:
            return
    raise UsageError(
        f"-sc takes install=SHELL or uninstall=SHELL, SHELL one of {', '.join(SHELLS)}"
    )


def _key(word: str) -> str:
    """Return the key that a word gives a value to."""
    key, equals, _ = word.partition("=")
    if word.startswith("~"):
        raise UsageError(f"{word!r} would leave a key out; give it another value instead")
    if not equals or not key.strip():
        raise UsageError(f"{word!r} cannot be read as key=value")
    return key.strip().lstrip("+")


def _check_hydra(key: str, word: str) -> None:
    adds = word.startswith("+") and not key.startswith("hydra.job.env_set.")
    if not key.startswith(_LAUNCHER) or key.endswith("._target_") or adds:
        raise UsageError(
            f"{key} is not for the command line; of Hydra's own keys it takes hydra/launcher, "
            "hydra.launcher.KEY, +hydra.job.env_set.KEY and hydra.job.env_copy"
        )
