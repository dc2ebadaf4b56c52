"""What two worker processes gain over one on a sweep of 20 seeds, each with one thread.

Both sweeps are whole commands, with all imports and start-up. On a busy machine the clock says
little; the CPU time of all processes then tells what spreading costs, and twice that of one worker
divided by that of both is what two idle cores could gain at most.

Run: python benchmarks/launchers.py [--cpu] [--budget small]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

from ddobench.runner.provenance import describe_machine

LIMIT = 1.7
WORKERS, SEEDS, SEEDS_PER_JOB = 2, 20, 5
SWEEP = ["method=ga", "task=chain", "d=21", "n=2000", "-m", f"seed=0-{SEEDS - 1}",
         f"seeds_per_job={SEEDS_PER_JOB}"]  # fmt: skip


def measure(words: list[str]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a sweep and all its workers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ddobench", *SWEEP, f"results_dir={folder}", *words]
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True,
                       env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, sum(after[:2]) - sum(before[:2])


def main() -> int:
    """Run both sweeps and print what was gained beside the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="judge by CPU time, on a busy machine")
    parser.add_argument("--budget", default="full")
    options = parser.parse_args()
    budget = f"budget={options.budget}"
    alone = measure([budget])
    spread = measure([budget, "hydra/launcher=joblib", f"hydra.launcher.n_jobs={WORKERS}"])
    gains = [alone[0] / spread[0], WORKERS * alone[1] / spread[1]]
    print(f"{describe_machine()['cpu']}, load {os.getloadavg()[0]:.1f}, {' '.join(SWEEP)} {budget}")
    print(f"{'':<24}{'seconds':>10}{'CPU s':>10}")
    print(f"{'one worker':<24}{alone[0]:>10.1f}{alone[1]:>10.1f}")
    print(f"{f'joblib, {WORKERS} workers':<24}{spread[0]:>10.1f}{spread[1]:>10.1f}")
    print(f"{'gain':<24}{gains[0]:>10.2f}{gains[1]:>10.2f}   limit {LIMIT}")
    return 0 if gains[options.cpu] >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
