"""What a careless task or method may do to the whole process: change its settings, or end it."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

Setting = tuple[Callable[[], Any], Callable[[Any], object]]  # how it is read, and how it is set


@contextlib.contextmanager
def restored_process() -> Iterator[None]:
    """Restore at the end of the block what other runs depend on, such as the current folder."""
    settings = _list_settings()
    before = [read() for read, _ in settings]
    try:
        yield
    finally:
        for (read, restore), value in zip(settings, before, strict=True):
            if read() != value:
                restore(value)


@contextlib.contextmanager
def exit_as_error() -> Iterator[None]:
    """Raise SystemExit where `os._exit` would end this process without a word.

    Forked processes, such as those of multiprocessing, end as usual.
    """
    end, process = os._exit, os.getpid()
    modules = [os, *filter(None, [sys.modules.get("posix")])]

    def raise_exit(status: int) -> NoReturn:
        if os.getpid() != process:
            end(status)
        raise SystemExit(f"os._exit({status}) was called")

    for module in modules:
        module._exit = raise_exit  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module._exit = end  # type: ignore[attr-defined]


def _list_settings() -> list[Setting]:
    import torch
    from torch.backends import cudnn

    def set_device(device: torch.device) -> None:
        # None is the default, the CPU; naming a device slows down every call.
        torch.set_default_device(None if device.type == "cpu" else device)

    def set_cudnn(flags: tuple[bool, bool]) -> None:
        cudnn.deterministic, cudnn.benchmark = flags

    return [
        (_read_folder, _enter_folder),
        (np.geterr, lambda kinds: np.seterr(**kinds)),
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_default_device, set_device),
        (torch.is_grad_enabled, torch.set_grad_enabled),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
        (lambda: (cudnn.deterministic, cudnn.benchmark), set_cudnn),
    ]


def _read_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was removed
        return None


def _enter_folder(folder: Path | None) -> None:
    if folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(folder)
