"""The cost of drawing ten large instances with their exact optima, and its limits.

Run: python benchmarks/tasks.py
"""

import resource
import sys
import time

import torch

from ddobench.tasks.rbf import RBF

THREADS = 2
LIMIT_SECONDS = {"gaussian": 10.0, "laplace": 10.0, "cauchy": 10.0, "network": 90.0}
LIMIT_GIGABYTES = 1.0


def main() -> int:
    """Draw `chain d=61 n=20000` for ten seeds; return 1 if a limit is passed."""
    torch.set_num_threads(THREADS)
    print(f"10 instances of chain d=61 n=20000 on {THREADS} threads, optimum included")
    late = False
    for bump, limit in LIMIT_SECONDS.items():
        began = time.perf_counter()
        problem = RBF(d=61, n=20_000, map="orthogonal", bump=bump).problem(range(10))
        seconds = time.perf_counter() - began
        assert problem.optimum is not None
        print(f"{bump:12} {seconds:6.2f}   limit {limit:.0f}   seconds")
        late |= seconds > limit
    unit = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
    print(f"gigabytes    {gigabytes:6.2f}   limit {LIMIT_GIGABYTES:.0f}   (peak of the process)")
    return int(late or gigabytes > LIMIT_GIGABYTES)


if __name__ == "__main__":
    sys.exit(main())
