"""Matrix products: a seed's bits do not depend on the other seeds, and no CPU is left half idle.

On some CPUs (seen on AMD) Intel's MKL rounds a float32 product by the address of its operands
modulo 16 bytes, so that what a seed computes depends on its place in a stack. Any value of the
environment variable MKL_CBWR prevents that; `AUTO` has no measurable cost, stricter modes do. MKL
reads the variable at its first product, so it is set when `ddobench` is imported; worker processes
inherit it, or import `ddobench` themselves before they compute.

A build of PyTorch without MKL (ARM, another BLAS) has no such mode: there, results are the same to
the bit for the same stack of seeds, and up to rounding beside other seeds.

On AMD CPUs with AVX-512, MKL keeps to its kernels for AVX2. PyTorch has oneDNN too, whose float32
products take less than half the time there (`benchmarks/speed.md`). `fast_products` in
`models.tensors` chooses it by PyTorch's precision "medium", which would allow oneDNN to round to
bfloat16 on some CPUs; so its instructions are limited to those that have no bfloat16. Any other
limit in the environment variable ONEDNN_MAX_CPU_ISA leaves all products to MKL.
"""

import os
import sys
import threading
import warnings
from functools import cache
from pathlib import Path

VARIABLE = "MKL_CBWR"
DEFAULT = "AUTO"
TOO_LATE = "too late"
LIMIT = "ONEDNN_MAX_CPU_ISA"
FLOAT32_ONLY = "AVX512_CORE"  # the most instructions that oneDNN may use: none for bfloat16
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
_ONE_CPU = 4096  # characters of /proc/cpuinfo that describe the first CPU
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_OFF = 1  # MKL's own code for "no mode is in force"
_AUTO = 2  # also in force if MKL does not know the value, or the CPU cannot do what it names
_AUTO_VALUES = ("AUTO", "AUTO,STRICT", "BRANCH=AUTO", "BRANCH=AUTO,STRICT")
_BRANCH = 1  # what of the mode to ask for


def request_stable_products() -> None:
    """Set the mode unless the user has, and warn if MKL has multiplied before."""
    if not os.environ.get(VARIABLE):  # an empty value is none to MKL
        os.environ[VARIABLE] = DEFAULT
    if _is_amd_with_avx512():
        os.environ.setdefault(LIMIT, FLOAT32_ONLY)
    if "torch" in sys.modules and products_mode() == TOO_LATE:
        warnings.warn(
            "PyTorch multiplied matrices before ddobench was imported, so a seed's result may "
            "depend on the seeds beside it in the last digits; import ddobench first, or set "
            f"{VARIABLE}={DEFAULT} before Python starts",
            stacklevel=3,
        )


def prefers_onednn() -> bool:
    """Return whether float32 products should be oneDNN's."""
    return os.environ.get(LIMIT) == FLOAT32_ONLY and _is_amd_with_avx512()


@cache
def _is_amd_with_avx512() -> bool:
    try:
        with Path("/proc/cpuinfo").open() as file:
            words = file.read(_ONE_CPU).split()
    except OSError:
        return False
    return "AuthenticAMD" in words and {*words} >= _AVX512


def limit_threads() -> None:
    """Let numeric libraries use one thread where no other can be started (`ulimit -u 1`).

    OpenBLAS would interrupt the program as if by Ctrl-C.
    """
    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        for name in _THREADS:
            os.environ.setdefault(name, "1")


def products_mode() -> str:
    """Return the mode that MKL's products are in, `too late`, or `` where there is no MKL.

    Asking counts as first use: MKL reads the variable now if it has not before.
    """
    import torch

    if not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return ""
    asked, code = os.environ.get(VARIABLE, ""), _mode_code()
    if code == _OFF:
        return TOO_LATE
    return DEFAULT if code == _AUTO and asked not in _AUTO_VALUES else asked


def _mode_code() -> int | None:
    """Ask the MKL inside PyTorch; None where it does not answer."""
    import ctypes

    import torch

    libraries = sorted((Path(torch.__file__).parent / "lib").glob("*torch_cpu.*"))
    try:
        return int(ctypes.CDLL(str(libraries[0])).mkl_serv_cbwr_get(_BRANCH))
    except (IndexError, OSError, AttributeError):
        return None
