"""A real SLURM of one node below a temporary folder, from the packages slurm-wlm and munge.

Nothing of the system is touched: all files are in the folder, and `SLURM_CONF` names its
configuration. It has no accounting, as many small clusters.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")
_PLACES = "/usr/sbin:/usr/bin:/sbin:/bin"
_CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs() -> list[str]:
    """Return which programs of SLURM are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=_PLACES) is None]


@contextmanager
def private_slurm(folder: Path, patience: float) -> Iterator[Path]:
    """Start a cluster and give its configuration; end it by the process ids in its files."""
    munge = folder / "munge"
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(parents=True)
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        ports = [free.getsockname()[1] for free in (one, other)]
    host = socket.gethostname().partition(".")[0]
    conf = folder / "slurm.conf"
    conf.write_text(_CONFIGURATION.format(folder=folder, host=host, ports=ports))
    environment = {**os.environ, "SLURM_CONF": str(conf), "PATH": _PLACES}
    (munge / "key").write_bytes(os.urandom(128))
    (munge / "key").chmod(0o400)
    munge.chmod(0o755)
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log",
             "seed-file": "seed"}  # fmt: skip
    words = [f"--{option}={munge / name}" for option, name in files.items()]
    commands = (["munged", "--force", *words], ["slurmctld"], ["slurmd"])
    try:
        for command in commands:
            subprocess.run(command, env=environment, check=True, capture_output=True)
        deadline = time.monotonic() + patience
        while "idle" not in subprocess.run(
            ["sinfo", "--noheader", "--format=%T"],
            env=environment, capture_output=True, text=True, check=False,
        ).stdout:  # fmt: skip
            assert time.monotonic() < deadline, (folder / "slurmctld.log").read_text()
            time.sleep(0.2)
        yield conf
    finally:
        subprocess.run(["scancel", "--full", "--me"], env=environment, check=False)
        for file in (folder / "slurmd.pid", folder / "slurmctld.pid", munge / "pid"):
            _end(file, patience)


def _end(file: Path, patience: float) -> None:
    """End the process whose id is in a file, and wait for it."""
    with suppress(OSError, ValueError):
        process = int(file.read_text())
        os.kill(process, signal.SIGTERM)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            os.kill(process, 0)  # raises when it has ended
            time.sleep(0.1)
