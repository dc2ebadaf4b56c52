"""The speed-up of two worker processes over one, on a sweep of 20 seeds, each with one thread.

Both sweeps are whole commands, with imports and start-up, and the default number of seeds per job.
On a busy machine wall time is not reliable; then --cpu estimates that of an idle machine by the CPU
time of the command plus that of the busiest worker.

Run: python benchmarks/launchers.py [--cpu] [--method linear] [--budget small]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ddobench.runner.provenance import describe_machine

LIMIT = 1.7
WORKERS, SEEDS = 2, 20
SWEEP = ["task=chain", "d=41", "n=10000", "-m", f"seed=0-{SEEDS - 1}"]
POLL_SECONDS = 0.1  # the CPU time of a process after its last poll is not counted
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(words: list[str]) -> tuple[float, list[float]]:
    """Return the seconds of a sweep and the CPU seconds of its processes, the command first."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ddobench", *SWEEP, f"results_dir={folder}", *words]
        began = time.perf_counter()
        sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip
        spent: dict[int, float] = {}
        while sweep.poll() is None:
            spent |= read_cpu_times(sweep.pid)
            time.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - began
    if sweep.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {sweep.returncode}")
    return seconds, [spent.pop(sweep.pid), *sorted(spent.values(), reverse=True)]


def read_cpu_times(root: int) -> dict[int, float]:
    """Return the CPU seconds so far of a process and its descendants, by process id."""
    spent, parents = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(file.parent.name)
        parents[pid] = int(fields[1])
        spent[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return {pid: spent[pid] for pid in family if pid in spent}


def main() -> int:
    """Run both sweeps and print the speed-up and its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="judge by CPU time, on a busy machine")
    parser.add_argument("--method", default="additive")
    parser.add_argument("--budget", default="full")
    options = parser.parse_args()
    words = [f"method={options.method}", f"budget={options.budget}"]
    clock, (alone, *_) = measure(words)
    spread = [*words, "hydra/launcher=joblib", f"hydra.launcher.n_jobs={WORKERS}"]
    clocks, (command, *workers) = measure(spread)
    idle = command + max(workers)
    gains = [clock / clocks, alone / idle]
    print(f"{describe_machine()['cpu']}, load {os.getloadavg()[0]:.1f}, {' '.join(SWEEP + words)}")
    print(f"{'':<24}{'seconds':>10}{'CPU s, one after the other':>30}")
    print(f"{'one worker':<24}{clock:>10.1f}{alone:>30.1f}")
    parts = f"command {command:.1f}, workers {', '.join(f'{cpu:.1f}' for cpu in workers)}"
    print(f"{f'joblib, {WORKERS} workers':<24}{clocks:>10.1f}{idle:>30.1f}   {parts}")
    print(f"{'gain':<24}{gains[0]:>10.2f}{gains[1]:>30.2f}   limit {LIMIT}")
    return 0 if gains[options.cpu] >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
