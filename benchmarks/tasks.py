"""What drawing ten large instances with their exact optima costs, beside the limits.

Run: python benchmarks/tasks.py
"""

import resource
import sys
import time

import torch

from ddobench.tasks.rbf import RBF

THREADS = 2
LIMIT_SECONDS = 10.0
LIMIT_GIGABYTES = 1.0


def main() -> int:
    """Draw `chain d=61 n=20000` for ten seeds; return 1 if a limit is passed."""
    torch.set_num_threads(THREADS)
    began = time.perf_counter()
    problem = RBF(d=61, n=20_000, map="orthogonal").problem(range(10))
    seconds = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    assert problem.optimum is not None
    print(f"10 instances of chain d=61 n=20000 on {THREADS} threads, optimum included")
    print(f"seconds      {seconds:6.2f}   limit {LIMIT_SECONDS:.0f}")
    print(f"gigabytes    {gigabytes:6.2f}   limit {LIMIT_GIGABYTES:.0f}   (peak of the process)")
    return int(seconds > LIMIT_SECONDS or gigabytes > LIMIT_GIGABYTES)


if __name__ == "__main__":
    sys.exit(main())
