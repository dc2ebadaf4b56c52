"""The command line: `python -m ddobench`, or the script `ddobench`."""

import contextlib
import functools
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ddobench.cli.argv import (
    COMPLETION,
    CONFIG_DIR,
    HELP,
    MULTIRUN,
    VERSION,
    normalise,
    normalise_line,
    option_value,
    split,
)
from ddobench.cli.overrides import check_completion, check_overrides
from ddobench.errors import UsageError

_FULL_ERROR = "HYDRA_FULL_ERROR"


def main() -> None:
    """Run a job or a sweep, or print the help."""
    with _leaving_when_nobody_reads():
        _main()


def _main() -> None:
    if any(word in HELP for word in sys.argv[1:]):
        from ddobench.cli.help import print_help

        try:
            use_plugins(sys.argv[1:])
        except UsageError as error:
            _complain(str(error))
        print_help()
        return
    if any(word in VERSION for word in sys.argv[1:]):
        from importlib import metadata

        print(f"ddobench {metadata.version('ddobench')}")
        return

    def job(cfg: Any) -> Any:
        from ddobench.cli.job import run_job

        return run_job(cfg)

    run_hydra(job, "run")


def run_hydra(job: Callable[[Any], Any], config_name: str) -> None:
    """Run a function under Hydra; an error of the request becomes one sentence and exit code 2."""
    wants_traceback = os.environ.get(_FULL_ERROR) == "1"
    try:
        with _ending_like_ctrl_c(), _errors_coming_to_us():
            _start(job, config_name, wants_traceback)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except Exception as error:
        from ddobench.cli.messages import explain

        sentence = explain(error, config_name)
        if sentence is None or wants_traceback:
            raise
        _complain(sentence)


@contextlib.contextmanager
def _leaving_when_nobody_reads() -> Iterator[None]:
    """End without a word if what is printed goes nowhere, as in `ddobench --help | head -1`."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None  # as if ended by SIGPIPE


@contextlib.contextmanager
def _errors_coming_to_us() -> Iterator[None]:
    """Keep Hydra from printing errors itself."""
    before = os.environ.get(_FULL_ERROR)
    os.environ[_FULL_ERROR] = "1"
    try:
        yield
    finally:
        del os.environ[_FULL_ERROR]
        if before is not None:
            os.environ[_FULL_ERROR] = before


@contextlib.contextmanager
def _ending_like_ctrl_c() -> Iterator[None]:
    """Let other signals end a sweep as Ctrl-C does, with a word; one that is ignored stays so."""
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


def _complain(sentence: str) -> NoReturn:
    one_line = "; ".join(filter(None, map(str.strip, sentence.splitlines())))
    print(f"ddobench: {one_line}", file=sys.stderr)
    raise SystemExit(2) from None


def _start(job: Callable[[Any], Any], config_name: str, wants_traceback: bool) -> None:
    os.environ["DDOBENCH_COMMAND"] = _typed()
    typed = sys.argv[1:]
    use_plugins(typed)
    overrides, _ = split(typed)
    if any(word in COMPLETION for word in typed):
        check_completion(overrides)
        if _as_module():
            raise UsageError("-sc is for the script; write ddobench -sc install=SHELL")
        if "COMP_LINE" in os.environ:
            os.environ["COMP_LINE"] = normalise_line(os.environ["COMP_LINE"])
    else:
        sys.argv[1:] = normalise(typed)
        check_overrides(overrides, config_name)
    import hydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    from ddobench.cli import hydra_hooks

    _log_to_stderr()
    hydra_hooks.register()

    def guarded(cfg: Any) -> Any:
        try:
            return job(cfg)
        except Exception as error:
            from ddobench.cli.messages import explain

            sentence = explain(error, config_name)
            if HydraConfig.get().mode == RunMode.MULTIRUN or sentence is None or wants_traceback:
                raise
            _complain(sentence)  # Hydra would print the overrides before handing it on

    main = hydra.main(
        version_base="1.3", config_path="pkg://ddobench.conf", config_name=config_name
    )
    sweep = any(word in MULTIRUN for word in typed)
    with hydra_hooks.trusting_the_flag() if sweep else contextlib.nullcontext():
        main(functools.wraps(job)(guarded))()


def _as_module() -> bool:
    """Tell `python -m ddobench` from the script `ddobench`."""
    return sys.argv[0].endswith("__main__.py")


def _typed() -> str:
    """Return the command as the user typed it."""
    program = sys.argv[0]
    if _as_module():
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        module = spec.name.removesuffix(".__main__") if spec else "ddobench"
        program = f"python -m {module}"
    return " ".join([program, *map(shlex.quote, sys.argv[1:])])


def use_plugins(arguments: list[str]) -> None:
    """Let the YAML and the Python files of `--config-dir` be found, in worker processes too."""
    from ddobench import registry

    folder = option_value(arguments, CONFIG_DIR)
    if folder is None:
        return
    folder = os.path.abspath(folder)  # noqa: PTH100 - symlinks stay as typed
    registry.use_config_dir(folder)
    sys.path.append(folder)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [inherited, folder]))


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
