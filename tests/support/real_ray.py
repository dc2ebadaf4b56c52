"""A real Ray cluster of two nodes on this machine, each below a temporary folder of its own.

Their addresses are loopback addresses. A node ends if its own parts take longer than 15 seconds to
start, which Ray does not let anyone change. On a busy machine they do, so it is then started again.
"""

import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HEAD, _OTHER = "127.0.0.2", "127.0.0.3"
_READY, LATE = "This command will now block", "timed out during startup"


@contextmanager
def private_ray(patience: float) -> Iterator[str]:
    """Start a cluster of two nodes with a core each and give its address; end it afterwards."""
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind((_HEAD, 0))
        port, client = (free.getsockname()[1] for free in (one, other))
    address = f"{_HEAD}:{port}"
    head = ["--head", f"--port={port}", f"--ray-client-server-port={client}",
            "--include-dashboard=false"]  # fmt: skip
    with _node(_HEAD, head, patience), _node(_OTHER, [f"--address={address}"], patience):
        yield address


@contextmanager
def _node(host: str, place: list[str], patience: float) -> Iterator[None]:
    """Start a node, wait for it, and end it and all its parts afterwards."""
    deadline = time.monotonic() + patience
    # Not the folder of a test: the name of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        command = [
            str(Path(sys.executable).with_name("ray")), "start", *place, "--block",
            f"--node-ip-address={host}", "--num-cpus=1", "--object-store-memory=100000000",
            "--include-log-monitor=false", "--disable-usage-stats", f"--temp-dir={folder}",
        ]  # fmt: skip
        log = Path(folder, "said")
        while True:
            with log.open("w") as said:
                node = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                while node.poll() is None and _READY not in log.read_text():
                    time.sleep(0.2)
                if node.poll() is None:
                    yield
                    break
            finally:
                node.send_signal(signal.SIGTERM)  # it ends what it has started
                node.wait(patience)
            assert LATE in log.read_text(), log.read_text()
            assert time.monotonic() < deadline, log.read_text()
