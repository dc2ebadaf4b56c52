"""Thousands of random command lines: no traceback, no stray file, no run that was not requested.

Each is run in an empty folder, without the work inside a run (`tests/support/attempts.py`). A
setting that was accepted must be found in the runs that were made, so that no typo is silently
ignored. Line i is the same whenever it is tried. A few of the worst lines are in
`tests/cli/test_fuzz.py`.

Run: python benchmarks/fuzz.py [--lines 3000] [--state FILE]
"""

import argparse
import random
import shlex
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the tests' own modules

from tests.support.attempts import GROUPS, KEYS, PARAMETERS, attempt, judge, options_of
from tests.support.tally import Tally

LINES = 3000
STREAM = 29_000_000
PROCESSES = 2

PLUGIN = """
from dataclasses import dataclass
from ddobench.contracts import OneSeedMethod


@dataclass(kw_only=True)
class Mine(OneSeedMethod):
    step: float = 0.1

    def fit_one(self, x, y, space, rng):
        self.best = x[y.argmax()]

    def propose_one(self, starts, rng):
        yield starts
"""
CARD = "card: {label: Mine, color: '#332288', summary: own}\n"
FILES: dict[str, str | bytes] = {
    "good/fuzz_mine.py": PLUGIN,
    "good/method/mine.yaml": f"_target_: fuzz_mine.Mine\n{CARD}step: 0.1\n",
    "broken/method/mine.yaml": "_target_: [fuzz\n  : }\n",
    "card/fuzz_mine.py": PLUGIN,
    "card/method/mine.yaml": "_target_: fuzz_mine.Mine\ncard: hello\n",
    "list/method/mine.yaml": "- 1\n- 2\n",
    "latin/method/mine.yaml": b"_target_: \xff\xfe\n",
    "absent/method/mine.yaml": f"_target_: fuzz_nowhere.Mine\n{CARD}",
    "syntax/fuzz_syntax.py": "def (:\n",
    "syntax/method/mine.yaml": f"_target_: fuzz_syntax.Mine\n{CARD}",
    "leaves/fuzz_leaves.py": "raise SystemExit(0)\n",
    "leaves/method/mine.yaml": f"_target_: fuzz_leaves.Mine\n{CARD}",
    "foreign/method/mine.yaml": f"_target_: logging.FileHandler\nfilename: leak\n{CARD}",
    "tagged/method/mine.yaml": "!!python/object/apply:os.system ['touch leak']\n",
    "defaults/method/mine.yaml": f"defaults: 3\n_target_: fuzz_mine.Mine\n{CARD}",
    "a_file": "",
}


def write_plugins(folder: Path) -> None:
    """Write what `--config-dir` may be given, sound and broken."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


JUNK = (
    "", " ", "null", "nan", "inf", "-1", "1e400", "1.5", "true", "[]", "{}", "[1", "{a:1}", "[[1]]",
    "'", '"', "'a", "${d}", "${nope}", "${nope:1}", "${oc.env:NOPE}", "~/x", "../x", "/", "a:b",
    "a b", "a=b", "\n", "\t", "é", "\U0001f600", "\udcff", "%s", "{0}", "$HOME", "`id`", ";ls",
    "x" * 300, "9" * 30, "9" * 5000, "[" * 400, "0x10", "1_000", "٣", "a,b", ",", ",,", "1,", "@",
    "glob(*)", "glob(zzz)", "glob([a*,b*])", "range(0,3)", "range(3,3)", "range(0,1,0)",
    "range(0,9,4)", "range(0.1,0.3,0.1)", "choice()", "choice(1,2)", "interval(0,1)", "sort(2,1)",
    "shuffle(1,2)", "int(3)", "str(3)", "float(x)", "tag(a,1)", "choice(1", "os.system",
    "logging.FileHandler", "!!python/none", "\\", "\\'", "a\\", "#x", "&a", "*a", "|", ">", "?",
    "0-3", "5-5", "9-3", "0-99999999", "0-9,3-12", "-", "--", "1-", "1-2-3",
)  # fmt: skip
OPTIONS = (
    "-m", "-m", "-m", "-m", "--multirun", "--run", "-r", "--cfg job", "-c job", "--cfg", "--cfg x",
    "--cfg hydra", "--resolve", "--package method", "-p x", "--info", "--info searchpath", "-i x",
    "--help", "-h", "--version", "--hydra-help", "--experimental-rerun", "--experimental-rerun x",
    "-cp /etc", "--config-path x", "-cn report", "--config-name x", "-sc", "-sc install=bash",
    "-sc query=bash", "-sc x=1", "--shell-completion", "--bogus", "--", "-", "-m=1", "--cfg=job",
    "--config-dir", "--config-dir=", "--config-dir nowhere", "-cd a_file", "--config_dir x",
)  # fmt: skip
HYDRA = (
    "hydra.run.dir=elsewhere", "hydra.sweep.dir=elsewhere", "hydra.output_subdir=there",
    "hydra.job.chdir=true", "hydra/job_logging=default", "hydra.mode=RUN", "hydra/sweeper=basic",
    "hydra/launcher=basic", "hydra/launcher=nope", "hydra.launcher=null", "hydra.sweeper=null",
    "+hydra.callbacks.x._target_=os.getcwd", "hydra.launcher._target_=os.getcwd", "hydra=null",
    "hydra.searchpath=[pkg://os]", "hydra.verbose=true", "+hydra.job.env_set.FUZZ=1",
    "hydra.job.name=x", "+hydra.launcher.x=1", "hydra.sweeper.params=null", "hydra/output=default",
)  # fmt: skip


SETTINGS = (
    "method.card.color=red", "budget.training=0.5", "budget.top=3", "search.steps=3",
    "surrogate.training.steps=3", "surrogate.training.rate=0.01", "latent.training.batch=16",
    "task.noise=0.5", "select.grid=null", "isolate=true", "timeout=60", "memory_gb=2",
    "hydra.launcher.n_jobs=1", "method.device=cpu",
)  # fmt: skip
FEATURES = (
    "isolate=true", "isolate=1", "isolate=maybe", "isolate=true,false", "timeout=60", "timeout=0",
    "timeout=-1", "timeout=1,2", "training=paper", "training=nope", "select=nope", "memory_gb=1e-3",
    "experiment=regret", "experiment=nope", "hydra.launcher.timeout_min=1",
    "surrogate.training.steps=3", "latent.training.steps=2",
)  # fmt: skip


class Maker:
    """Makes command lines from one stream of random numbers."""

    def __init__(self, seed: int, plugins: Path) -> None:
        self.random = random.Random(seed)
        self.plugins = plugins

    def line(self) -> list[str]:
        """Return the words of a command line."""
        words = self._sound_words()
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2, 3))):
            words = self._spoil(words)
        if not any(word.startswith("results_dir=") for word in words) and self._chance(0.8):
            words.append(f"results_dir={self.random.choice(('out', 'a b', 'x=1', 'out/in'))}")
        return words

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _sound_words(self) -> list[str]:
        pick = self.random.choice
        words = [f"d={pick(('5', '7', '5,7', 'range(5,8,2)', '4', '20'))}", f"n={pick((20, 30))}"]
        words.append(f"method={pick((*options_of('method'), 'naive', 'naive', 'naive,random'))}")
        words.append(f"budget={pick(('tiny', 'tiny', 'small', 'full'))}")
        if self._chance(0.6):
            words.append(f"task={pick(options_of('task'))}")
        if self._chance(0.7):
            words.append(f"seed={pick(('0', '3', '0-2', '0-1,5', '0-9999999', '[1,2]'))}")
        if self._chance(0.2):
            group = pick(GROUPS[3:])
            words.append(f"{group}={pick(options_of(group))}")
        if self._chance(0.15):
            words.append(pick(PARAMETERS))
        if self._chance(0.1):
            words.append(pick(("device=cpu", "device=cuda", "seeds_per_job=1", "many=false")))
        if self._chance(0.15):
            folder = self.plugins / pick(sorted({name.split("/")[0] for name in FILES}))
            words = [
                "--config-dir",
                str(folder),
                *(w for w in words if not w.startswith("method=")),
            ]
            words.append(f"method={pick(('mine', 'mine', 'naive', 'glob(m*)'))}")
        if self._chance(0.25):
            words.append("plan=true")
        self.random.shuffle(words if words[0] != "--config-dir" else [])
        if self._chance(0.6):
            words.insert(self.random.randrange(len(words) + 1) if words[0][0] != "-" else 2, "-m")
        return words

    def _spoil(self, words: list[str]) -> list[str]:
        """Return the words with something wrong, or at least odd, in them."""
        pick, at = self.random.choice, self.random.randrange(len(words)) if words else 0
        kind = self.random.randrange(11)
        if kind == 0:
            return [*words, f"{pick(KEYS)}={pick(JUNK)}"]
        if kind == 1 and words:
            key = words[at].partition("=")[0]
            return [*words[:at], f"{key}={pick(JUNK)}", *words[at + 1 :]]
        if kind == 2 and words:
            return [*words[:at], self._garble(words[at]), *words[at + 1 :]]
        if kind == 3:
            return [*words, *pick(OPTIONS).split()]
        if kind == 4:
            return [*words, pick(HYDRA)]
        if kind == 5:
            return [*words, pick(PARAMETERS)]
        if kind == 6 and words:
            return [*words, words[at]]
        if kind == 7:
            return [
                *words,
                pick(("+", "++", "~", "")) + pick((*KEYS, "foo")) + pick(("", "=", "=1")),
            ]
        if kind == 8:
            return [*words, pick(("+", "++", "")) + self._mistype(pick(SETTINGS))]
        if kind == 9:
            return [*words, pick(FEATURES)]
        return [*words[:at], *words[at + 1 :]]

    def _mistype(self, word: str) -> str:
        """Return a setting with two letters of its key exchanged, or one missing or doubled."""
        key, _, value = word.partition("=")
        at = self.random.randrange(len(key) - 1)
        kind = self.random.randrange(3)
        middle = (key[at + 1] + key[at], "", key[at : at + 2] + key[at + 1])[kind]
        return f"{key[:at]}{middle}{key[at + 2 :]}={value}"

    def _garble(self, word: str) -> str:
        at = self.random.randrange(len(word) + 1)
        cut = word[at + self.random.randrange(2) :]
        return (
            word[:at] + self.random.choice(("", "x", "=", ",", "(", "'", " ", "9", "~", "-")) + cut
        )


def try_out(numbered: tuple[int, list[str]]) -> tuple[int, str, list[str]]:
    """Return the number of a command line, how it ended and what is wrong with it."""
    sys.dont_write_bytecode = True
    number, words = numbered
    tried = attempt(words)
    complaints = [f"{shlex.join(words)[:500]}\n  {complaint}" for complaint in judge(tried)]
    ends = {0: "accepted", 1: "some runs failed", 2: "refused", 130: "interrupted"}
    made = ", with runs" if tried.ran else ""
    return number, f"{ends.get(tried.code, tried.code)}{made}", complaints


def main() -> int:
    """Run the lines that are left and print the table; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--state", type=Path, help="where outcomes are kept, to be continued")
    options = parser.parse_args()
    tally = Tally(options.state)
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(PROCESSES) as pool:
        write_plugins(Path(folder))
        lines = [
            (line, Maker(STREAM + line, Path(folder)).line()) for line in tally.rest(options.lines)
        ]
        for tried in as_completed([pool.submit(try_out, line) for line in lines]):
            tally.add(*tried.result())
    return tally.print("command lines", "with a traceback, stray file, wrong run or idle setting")


if __name__ == "__main__":
    sys.exit(main())
