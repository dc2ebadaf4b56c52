"""What the queue of a SLURM cluster says of the jobs of a sweep, which bounds the wait for them.

submitit asks `sacct`, which knows nothing on a cluster without accounting. Here `squeue` is asked
instead, which every cluster has. A job without a result that is not in the queue has ended, and one
that waits for what will not come cannot start; a sweep ends when no other job is left.
"""

import logging
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

log = logging.getLogger(__name__)

SLURM = "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher"
_SQUEUE = ("squeue", "--me", "--noheader", "--array", "--format=%i|%r")
_LEAST_PAUSE, _MOST_PAUSE = 2.0, 30.0  # seconds between questions: a tenth of the time so far
_LOOKS = 3  # in a row that must agree on a job, as a queue changes while it is read
# Reasons of a waiting job that only a change of the job or of the cluster would end.
_NEVER = (
    "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit", "PartitionInactive",
    "BadConstraints", "InvalidAccount", "InvalidQOS", "AccountNotAllowed", "QOSNotAllowed",
    "JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied",
)  # fmt: skip


class SlurmQueue:
    """Answers what submitit asks of a watcher of jobs."""

    def __init__(self) -> None:
        self.began, self.asked = time.monotonic(), float("-inf")
        self.absent: dict[str, int] = {}  # job -> looks in a row that did not find it
        self.stuck: dict[str, int] = {}  # job -> looks in a row with a reason that does not pass
        self.reasons: dict[str, str] = {}  # of the jobs in the queue

    def register_job(self, job: str) -> None:
        """Watch a job."""
        self.absent[job], self.stuck[job] = 0, 0

    def is_done(self, job: str, mode: str = "standard") -> bool:  # noqa: ARG002 - of submitit
        """Return whether there is nothing left to wait for; a job with a result is not asked for.

        A job that was lost is reported only when the others have ended.
        """
        if mode != "cache":
            self.ask()
        return not any(self._may_end(other) for other in self.absent)

    def get_state(self, job: str, mode: str = "standard") -> str:  # noqa: ARG002 - of submitit
        """Return what is known of a job."""
        if self.stuck.get(job, 0) >= _LOOKS:
            return f"cannot start: {self.reasons.get(job)}"
        return "not in the queue" if self.absent.get(job) else "in the queue"

    def get_info(self, job: str, mode: str = "standard") -> dict[str, str]:
        """Return the same, by name."""
        return {"State": self.get_state(job, mode)}

    def _may_end(self, job: str) -> bool:
        return self.absent[job] < _LOOKS and self.stuck[job] < _LOOKS

    def ask(self) -> None:
        """Ask the cluster, unless it was asked a moment ago."""
        now = time.monotonic()
        pause = min(_MOST_PAUSE, max(_LEAST_PAUSE, (now - self.began) / 10))
        if now - self.asked < pause:
            return
        self.asked = now
        try:
            answer = subprocess.run(_SQUEUE, capture_output=True, text=True, check=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[0]
            log.warning("squeue does not answer, so lost jobs are not noticed: %s", reason)
            return
        lines = (line.partition("|") for line in answer.stdout.splitlines())
        self.reasons = {job: reason for job, _, reason in lines if job in self.absent}
        for job in self.absent:
            self.absent[job] = 0 if job in self.reasons else self.absent[job] + 1
            never = self.reasons.get(job) in _NEVER
            self.stuck[job] = self.stuck[job] + 1 if never else 0

    def describe_end(self) -> str:
        """Return why a sweep ended without all of its results."""
        stuck = {job: self.reasons.get(job, "") for job in self.stuck if self.stuck[job]}
        if stuck:
            why = ", ".join(sorted({*stuck.values()}))
            return f"SLURM cannot start {_name_jobs([*stuck])} as asked for ({why})"
        return "some jobs of SLURM ended without a result, killed or out of time or memory"

    def describe_rest(self) -> str:
        """Return which jobs stay in the queue and how they are ended, "" if none do."""
        self.asked = float("-inf")
        self.ask()
        left = [job for job in self.absent if not self.absent[job]]
        if not left:
            return ""
        ids = dict.fromkeys(job.partition("_")[0] for job in left)
        return f"{_name_jobs(left)} stay in the queue; {shlex.join(['scancel', *ids])} ends them"


def _name_jobs(jobs: Sequence[str]) -> str:
    shown = ", ".join(jobs[:5]) + (", ..." if len(jobs) > 5 else "")
    return f"{len(jobs)} jobs ({shown})" if len(jobs) > 1 else f"job {shown}"


@contextmanager
def watching_queue(target: object) -> Iterator[SlurmQueue | None]:
    """Let the launcher with this `_target_` ask the queue, if it is that of SLURM."""
    if target != SLURM:
        yield None
        return
    from submitit.slurm.slurm import SlurmJob

    before, queue = SlurmJob.watcher, SlurmQueue()
    SlurmJob.watcher = queue  # type: ignore[assignment]
    try:
        yield queue
    finally:
        SlurmJob.watcher = before


def limit_signal(launcher: Any) -> None:
    """Let the signal before the time limit of a job come in its second half at the earliest."""
    params = getattr(launcher, "params", {})
    minutes, delay = params.get("timeout_min"), params.get("signal_delay_s")
    if minutes and delay:
        params["signal_delay_s"] = max(1, min(int(delay), int(30 * float(minutes))))
