"""A stand-in for SLURM: `sbatch`, `srun` and `sacct` that run the jobs of an array at once, here.

What hydra-submitit-launcher and submitit do with a real cluster they do with these, and the jobs
are handed over in files, as there.
"""

import os
import sys
from pathlib import Path

SBATCH = """#!{python}
import os, re, subprocess, sys
from pathlib import Path

here, script = Path(__file__).parent, Path(sys.argv[-1]).absolute()
text = script.read_text()
(here / "submitted.sh").write_text(text)
last = re.search(r"^#SBATCH --array=0-(\\d+)%", text, re.MULTILINE)
number = 1 + len([*here.glob("*.job")])
(here / f"{{number}}.job").touch()
for task in range(int(last[1]) + 1) if last else [None]:
    name = str(number) if task is None else f"{{number}}_{{task}}"
    variables = {{"SLURM_JOB_ID": name, "SLURM_NTASKS": "1", "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NODEID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}}
    if task is not None:
        variables |= {{"SLURM_ARRAY_JOB_ID": str(number), "SLURM_ARRAY_TASK_ID": str(task)}}
    line = 'bash "$0" && echo COMPLETED > "$1" || echo FAILED > "$1"'
    subprocess.Popen(["bash", "-c", line, str(script), str(here / f"{{name}}.state")],
                     env=os.environ | variables, start_new_session=True, stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(f"Submitted batch job {{number}}")
"""
SRUN = """#!{python}
import os, sys

words, files = sys.argv[1:], {{}}
while words[0].startswith("--"):
    option = words.pop(0)
    if option in ("--output", "--error"):
        files[option] = words.pop(0)
tell = {{"%j": "SLURM_JOB_ID", "%A": "SLURM_ARRAY_JOB_ID", "%a": "SLURM_ARRAY_TASK_ID",
        "%t": "SLURM_PROCID"}}
for stream, option in ((1, "--output"), (2, "--error")):
    name = files.get(option, os.devnull)
    for sign, variable in tell.items():
        name = name.replace(sign, os.environ.get(variable, ""))
    os.makedirs(os.path.dirname(name), exist_ok=True)  # a job that starts at once may be the first
    os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
os.execvp(words[0], words)
"""
SACCT = """#!{python}
from pathlib import Path

print("JobID|State|NodeList")
for file in Path(__file__).parent.glob("*.state"):
    print(f"{{file.stem}}|{{file.read_text().strip() or 'RUNNING'}}|here")
"""


def install_slurm(folder: Path) -> str:
    """Put the programs into a folder and return a search path that begins with it."""
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT)):
        file = folder / name
        file.write_text(text.format(python=sys.executable))
        file.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])


def read_submitted(folder: Path) -> list[str]:
    """Return what the last job asked the cluster for, as options of `sbatch`."""
    lines = (folder / "submitted.sh").read_text().splitlines()
    return [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
