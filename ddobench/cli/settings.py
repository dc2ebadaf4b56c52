"""The keys that hold for a whole command, whatever it sweeps over."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ddobench.errors import UsageError
from ddobench.seeds import Seeds, parse_seeds

if TYPE_CHECKING:
    from omegaconf import DictConfig  # the help can do without

DEFAULT_RESULTS = "results/runs"
MANY = 10_000  # runs that nobody has to confirm
LISTED = 1_000  # points that a plan looks at one by one
WHOLE = ("plan", "many", "results_dir", "seeds_per_job", "memory_gb", "experiment")


@dataclass(frozen=True)
class Settings:
    """Where results go, and whether to run at all."""

    results: Path
    plan: bool
    many: bool

    def check_number(self, runs: int) -> None:
        """Raise if so many runs must be asked for by name and are not."""
        if runs > MANY and not (self.plan or self.many):
            raise UsageError(
                f"{runs} runs are more than {MANY}; plan=true says what they are, "
                "many=true runs them"
            )


def read_settings(cfg: "DictConfig") -> Settings:
    """Read them from a composed configuration."""
    return Settings(
        results=read_folder(cfg.results_dir),
        plan=_truth("plan", cfg.plan),
        many=_truth("many", cfg.many),
    )


def configured_seeds(cfg: "DictConfig") -> Seeds:
    """Return the seeds of a composed configuration."""
    from omegaconf import OmegaConf

    return parse_seeds(OmegaConf.to_object(cfg.seed) if OmegaConf.is_list(cfg.seed) else cfg.seed)


def read_folder(value: object, key: str = "results_dir") -> Path:
    """Return the folder that the value of a key names, in the home folder if it begins with `~`."""
    if not isinstance(value, str | Path) or not str(value).strip():
        said = "null" if value is None else repr(value)
        raise UsageError(f"{key} must be a folder, got {said}; write {key}=FOLDER")
    if "\0" in str(value):
        raise UsageError(f"{key} must be a folder, got a name with a zero byte in it")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # no such user
        raise UsageError(f"{key} must be a folder, got {str(value)!r}: {error}") from error


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, got {value!r}")
    return value
