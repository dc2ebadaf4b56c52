"""The command line: `python -m ddobench`, or the script `ddobench`."""

import contextlib
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddobench.cli.argv import (
    COMPLETION,
    CONFIG_DIR,
    HELP,
    VERSION,
    JobError,
    Request,
    complain,
    normalise_line,
    parse_request,
    quiet_output,
    split,
)
from ddobench.errors import UsageError

if TYPE_CHECKING:
    from omegaconf import DictConfig

_FULL_ERROR = "HYDRA_FULL_ERROR"


@quiet_output()
def main() -> None:
    """Run a job or a sweep, or print the help."""
    words = sys.argv[1:]
    if any(word in HELP for word in words):
        _print_help(words)
    elif any(word in VERSION for word in words):
        from importlib import metadata

        print(f"ddobench {metadata.version('ddobench')}")
    else:
        run_hydra(_run_job, "run")


def _print_help(words: list[str]) -> None:
    from ddobench.cli.help import print_help

    try:
        use_plugins(words)
    except UsageError as error:
        complain(str(error))
    print_help()


def _run_job(cfg: "DictConfig", request: Request) -> Any:
    from ddobench.cli.job import run_job  # imported late: the help needs neither Hydra nor PyTorch

    return run_job(cfg, request)


def run_hydra(job: Callable[[Any, Request], Any], config_name: str) -> None:
    """Run a function under Hydra; an error of the request becomes one sentence and exit code 2.

    The function is called with a composed configuration and the request.
    """
    wants_traceback = os.environ.get(_FULL_ERROR) == "1"
    failure: Exception
    try:
        with _signals_as_interrupt(), _full_hydra_errors():
            _start(job, config_name)
            return
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except JobError as error:
        failure = error.error
    except Exception as error:
        failure = error
    from ddobench.cli.messages import explain

    sentence = explain(failure, config_name)
    if sentence is None or wants_traceback:
        raise failure
    complain(sentence)


def _start(job: Callable[[Any, Request], Any], config_name: str) -> None:
    request = parse_request(sys.argv[1:], config_name, _typed_command())
    if request.has(COMPLETION):
        if _is_module():
            raise UsageError("-sc is for the script; write ddobench -sc install=SHELL")
        if "COMP_LINE" in os.environ:
            os.environ["COMP_LINE"] = normalise_line(os.environ["COMP_LINE"])
    _use_config_dir(request.option(CONFIG_DIR))
    import hydra

    from ddobench.cli import hooks
    from ddobench.cli.job import Job

    _log_to_stderr()
    hooks.register()
    sys.argv[1:] = request.hydra_arguments()
    run = hydra.main(version_base="1.3", config_path="pkg://ddobench.conf", config_name=config_name)
    run(Job(job, request))()


def _is_module() -> bool:
    """Return whether this is `python -m ddobench` rather than the script `ddobench`."""
    return sys.argv[0].endswith("__main__.py")


def _typed_command() -> str:
    """Return the command as the user typed it."""
    program = sys.argv[0]
    if _is_module():
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        module = spec.name.removesuffix(".__main__") if spec else "ddobench"
        program = f"python -m {module}"
    return " ".join([program, *map(shlex.quote, sys.argv[1:])])


def use_plugins(words: list[str]) -> None:
    """Let the YAML and the Python files of `--config-dir` be found, in worker processes too."""
    _, options = split(words)
    _use_config_dir(next((options[name] for name in CONFIG_DIR if name in options), None))


def _use_config_dir(folder: str | None) -> None:
    from ddobench import registry

    if folder is None:
        return
    folder = os.path.abspath(folder)  # noqa: PTH100 - symlinks stay as typed
    if not Path(folder).is_dir():  # Python would wait for a named pipe on its path
        wrong = "is no folder" if Path(folder).exists() else "does not exist"
        raise UsageError(f"the folder given by --config-dir {wrong}, got {folder}; name the folder "
                         "above method/NAME.yaml")  # fmt: skip
    registry.use_config_dir(folder)
    sys.path.append(folder)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [inherited, folder]))


@contextlib.contextmanager
def _full_hydra_errors() -> Iterator[None]:
    """Make Hydra raise its errors instead of printing them."""
    before = os.environ.get(_FULL_ERROR)
    os.environ[_FULL_ERROR] = "1"
    try:
        yield
    finally:
        del os.environ[_FULL_ERROR]
        if before is not None:
            os.environ[_FULL_ERROR] = before


@contextlib.contextmanager
def _signals_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C, unless they are ignored."""
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    changed = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _log_to_stderr() -> None:
    """Send our warnings to stderr, above the progress bars if there are any."""
    from rich.logging import RichHandler

    from ddobench.progress import console

    handler: logging.Handler = (
        RichHandler(console=console, show_path=False, show_time=False)
        if console.is_terminal
        else logging.StreamHandler(sys.stderr)
    )
    log = logging.getLogger("ddobench")
    log.handlers = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
