"""The command line of the report: `python -m ddobench.report [results_dir=...] [method=...]`."""

import re
import sys
from pathlib import Path
from typing import Any

from ddobench.cli.argv import quiet_output
from ddobench.cli.main import run_hydra

_FILTER = re.compile(r"(?:only\.)?(task|method|d|n|seed|budget)=(.*)", re.DOTALL)


def format_filter(word: str) -> str:
    """Return a filter in the form that Hydra reads: `method=a,b` becomes `only.method=[a,b]`."""
    match = _FILTER.fullmatch(word)
    if match is None:
        return word
    name, value = match.groups()
    listed = "," in value and not value.startswith(("[", "'", '"'))
    return f"only.{name}=[{value}]" if listed else f"only.{name}={value}"


def job(cfg: Any, _: object) -> None:
    """Write the report of a configuration and print where it is."""
    from omegaconf import OmegaConf

    from ddobench.cli.argv import read_folder
    from ddobench.progress import reporting_late
    from ddobench.report.writer import write_report

    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    with reporting_late():
        written = write_report(
            _read_folders(plain["results_dir"]),
            read_folder(plain["report_dir"], "report_dir"),
            filters=plain["only"],
            remarks=plain["remarks"],
            method_remarks=plain["method_remarks"],
            claims=plain["claims"],
            formats=plain["formats"],
        )
    print(written.message)


def _read_folders(value: Any) -> Any:
    """Return the folder of `results_dir`, or those of `[a,b]` unless a folder has that name."""
    from ddobench.cli.argv import read_folder

    listed = isinstance(value, str) and value.startswith("[") and value.endswith("]")
    if not listed or Path(value).exists():
        return read_folder(value)
    return [read_folder(word.strip(" '\"")) for word in value[1:-1].split(",")]


@quiet_output()
def main() -> None:
    """Run the command line."""
    sys.argv[1:] = [format_filter(word) for word in sys.argv[1:]]
    run_hydra(job, "report")


if __name__ == "__main__":
    main()
