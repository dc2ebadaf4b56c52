"""Data of others: found, verified, and fetched from a server on this machine."""

import gzip
import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ddobench import data, datasets, registry
from ddobench.datasets import DataSet, Part, find_file, missing_data, read_data
from ddobench.errors import UsageError
from ddobench.runner.build import build_task

TEXT = b"a,b,y\n1,2,3\n4,5,6\n"
SMALL = DataSet(
    "small", "small.csv", hashlib.sha256(TEXT).hexdigest(), "MIT", "Nobody 2026",
    (Part("http://127.0.0.1:9/small", None),),
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty data folder, and register a set of two rows."""
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    monkeypatch.setitem(datasets.SETS, "small", SMALL)
    return tmp_path


@pytest.mark.parametrize("place", ["small.csv", "small.csv.gz", "sets/small.csv"])
def test_a_set_is_found_in_the_folder_compressed_or_not(folder: Path, place: str) -> None:
    assert find_file("small") is None
    path = folder / place
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(TEXT) if place.endswith(".gz") else TEXT)
    assert find_file("small") == path
    assert missing_data("small") == ""
    assert read_data("small") == TEXT


def test_without_the_variable_the_folder_is_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(datasets.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder() == tmp_path / "ddobench"


def test_line_ends_do_not_change_the_hash(folder: Path) -> None:
    (folder / "small.csv").write_bytes(TEXT.replace(b"\n", b"\r\n"))
    assert read_data("small") == TEXT


def test_an_edited_file_is_refused_unless_that_is_asked_for(folder: Path) -> None:
    edited = folder / "edited.csv"
    edited.write_bytes(TEXT.replace(b"6", b"7"))
    with pytest.raises(UsageError, match=r"not the published file of small.*verify=false"):
        read_data("small", str(edited))
    assert read_data("small", str(edited), verify=False).endswith(b"7\n")
    assert datasets.hash_unverified("small", str(edited), verify=True) == ""
    assert len(datasets.hash_unverified("small", str(edited), verify=False)) == 16


def test_a_file_that_changes_is_read_again(folder: Path) -> None:
    (folder / "small.csv").write_bytes(TEXT)
    assert read_data("small") == TEXT
    (folder / "small.csv").write_bytes(TEXT + b"7,8,9\n")
    with pytest.raises(UsageError, match="not the published file"):
        read_data("small")


def test_a_missing_set_is_refused_with_the_command_that_fetches_it() -> None:
    with pytest.raises(UsageError, match=r"small is not here; .*ddobench.data --fetch small"):
        read_data("small")
    assert "--fetch small" in missing_data("small")
    assert missing_data("other") == "it needs the data set other, which is not registered"
    with pytest.raises(UsageError, match="there is no data set 'other'; there are superconductor"):
        read_data("other")


def test_a_file_that_cannot_be_read_is_reported(folder: Path) -> None:
    (folder / "small.csv.gz").write_bytes(gzip.compress(TEXT)[:-12])
    with pytest.raises(UsageError, match=r"small.csv.gz cannot be read"):
        read_data("small")
    with pytest.raises(UsageError, match=r"nowhere\.csv cannot be read"):
        read_data("small", "nowhere.csv")


def test_every_task_without_its_data_is_left_out_of_globs_and_refused() -> None:
    for entry in registry.entries("task"):
        written = registry.read_choice("task", entry.name)
        if "data" not in written["card"]:
            continue
        assert f"--fetch {written['card']['data']}" in entry.missing_dependency
        config = {key: value for key, value in written.items() if "$" not in str(value)}
        with pytest.raises(UsageError, match=f"{written['card']['data']} is not here"):
            build_task({**config, "d": 2, "n": 2})


@dataclass
class Server:
    """A server of files by their path, which counts what it is asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)  # paths of which only the first half is sent
    asked: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve files on this machine."""
    pytest.importorskip("pooch")
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            content = served.files.get(self.path)
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            whole = content or b""
            self.wfile.write(whole[: len(whole) // 2] if self.path in served.cut else whole)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served.address = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        http.shutdown()
        thread.join()


def serve_parts(server: Server, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Register the set as two parts without names of columns."""
    server.files |= {"/one": b"1,2,3\n", "/two": b"4,5,6"}
    parts = tuple(
        Part(server.address + path, hashlib.sha256(server.files[path]).hexdigest())
        for path in ("/one", "/two")
    )
    one = replace(SMALL, parts=parts, header="a,b,y")
    monkeypatch.setitem(datasets.SETS, "small", one)
    return one


def test_a_set_is_fetched_once_and_verified(
    server: Server,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    serve_parts(server, monkeypatch)
    assert data.main(["--fetch", "small"]) == 0
    assert (folder / "small.csv").read_bytes() == TEXT
    assert data.main(["--fetch", "small"]) == 0
    assert server.asked == ["/one", "/two"]
    assert [path.name for path in folder.rglob("*.csv")] == ["small.csv"]
    capsys.readouterr()
    assert data.main(["--verify", "small"]) == 0
    assert capsys.readouterr().out == "1 as published\n"


def test_a_member_of_an_archive_and_some_of_its_columns_are_taken(
    server: Server, folder: Path
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("all.csv", "A,x,B,Y\r\n1,0,2,3\r\n4,0,5,6\r\n")
    server.files["/zip"] = archive.getvalue()
    part = Part(f"{server.address}/zip", None, member="all.csv")
    one = replace(SMALL, parts=(part,), header="a,b,y", columns=(0, 2, 3))
    assert data.fetch(one, folder).read_bytes() == TEXT
    other = replace(one, parts=(replace(part, member="none.csv"),))
    with pytest.raises(UsageError, match=r"must be an archive with none.csv"):
        data.fetch(other, folder)


@pytest.mark.parametrize("known", [True, False], ids=["hash of the download", "of the text alone"])
def test_another_file_is_not_kept(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    one = serve_parts(server, monkeypatch)
    if not known:
        one = replace(one, parts=tuple(replace(part, sha256=None) for part in one.parts))
    server.files["/two"] = b"4,5,7"
    with pytest.raises(UsageError, match=r"has another file than the one published.*SHA-256"):
        data.fetch(one, folder)
    assert find_file("small") is None


def test_a_transfer_that_was_cut_is_continued_by_the_same_command(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serve_parts(server, monkeypatch)
    server.cut = {"/two"}
    with pytest.raises(SystemExit, match="2"):
        data.main(["--fetch", "small"])
    assert find_file("small") is None
    assert "/two" in capsys.readouterr().err
    server.cut, server.asked = set(), []
    assert data.main(["--fetch", "small"]) == 0
    assert server.asked == ["/two"]  # the first part is here already
    assert read_data("small") == TEXT


def test_an_interruption_loses_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = serve_parts(server, monkeypatch)

    def interrupt(*_: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(data, "_download", interrupt)
        assert data.main(["--fetch", "small"]) == 130
    assert "the same command continues" in capsys.readouterr().err
    assert data.fetch(one, datasets.data_folder()).read_bytes() == TEXT


def test_without_a_network_one_sentence_says_so(
    server: Server, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):  # nobody listens at the address of SMALL
        data.main(["--fetch", "small"])
    message = capsys.readouterr().err
    assert message.startswith("ddobench: http://127.0.0.1:9/small cannot be downloaded:")
    assert message.count("\n") == 1
    missing = replace(SMALL, parts=(Part(f"{server.address}/nothing", None),))
    with pytest.raises(UsageError, match="nothing cannot be downloaded: 404"):
        data.fetch(missing, folder)


def test_the_list_names_source_and_licence_and_what_is_here(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data.main(["small"]) == 0
    assert capsys.readouterr().out.startswith("small: not here\n  Nobody 2026; MIT\n  http://")
    (folder / "small.csv").write_bytes(TEXT + b"\n")
    assert data.main(["--verify", "small"]) == 1
    assert "not the published file" in capsys.readouterr().out
