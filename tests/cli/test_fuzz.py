"""No command line, however odd, gets a traceback, writes elsewhere or runs something else.

`benchmarks/fuzz.py` tries thousands of random ones.
"""

import pytest

from tests.support.attempts import attempt, judge

SMALL = ["method=naive", "d=5", "n=20", "budget=tiny", "results_dir=out"]
NASTY = [  # beside SMALL
    ["seed=0-1", "-m"],
    ["-m", "seed=[1,2]"],
    ["-m", "seed=range(0,9,4)"],
    ["-m", "seed=0-9,3-12", "seeds_per_job=3"],
    ["seed=choice(1,2)"],
    ["seed=glob(*)", "-m"],
    ["seed=interval(0,1)", "-m"],
    ["seed=shuffle(range(3,3))", "-m"],
    ["seed=\u0663"],
    ["seed=" + "9" * 5000],
    ["seed=0-99999999"],
    ["+seed=1"],
    ["seed=null"],
    ["seed=${d}"],
    ["task=glob([a*,q*])", "-m"],
    ["task=quadratic,rbf"],
    ["task=quadratic,rbf", "-m", "plan=true"],
    ["task=" + "x" * 300],
    ["task='"],
    ["task=\udcff"],
    ["task={0}"],
    ["task.noise=${nope:1}"],
    ["task.noise=${oc.env:NOPE}"],
    ["task._target_=os.system"],
    ["task@:x=chain"],
    ["budget.designs=[[1]]"],
    ["budget.top=1e400"],
    ["graph=" + "[" * 400],
    ["graph=true,'true'", "-m"],
    ["search.steps=!!python/none", "-m"],
    ["latent=pca,", "-m"],
    ["latent=", "-m"],
    ["device=`id`"],
    ["hydra.run.dir=elsewhere"],
    ["hydra/sweeper=basic", "-m"],
    ["hydra.launcher._target_=os.getcwd", "-m"],
    ["hydra=null"],
    ["--cfg", "hydra"],
    ["--cfg=job", "-m", "seed=0-3"],
    ["--info", "plugins"],
    ["--package", "method"],
    ["-sc", "x=1"],
    ["--"],
    ["-"],
    ["="],
    ["a b"],
    ["\n"],
]


@pytest.mark.filterwarnings("default")  # a command line shows warnings
@pytest.mark.parametrize("words", NASTY, ids=lambda words: repr(" ".join(words))[:40])
def test_an_odd_command_line_runs_what_it_says_or_gets_one_sentence(words: list[str]) -> None:
    keys = {word.partition("=")[0] for word in words}
    assert judge(attempt([*(w for w in SMALL if w.partition("=")[0] not in keys), *words])) == []
