"""Make the records: python run.py, in this folder."""

import ddobench
from shrink import shrink

ddobench.evaluate(shrink, task="tfbind8", seed="0-7", results_dir="runs")
ddobench.evaluate(shrink, task="chain", d=11, n=2000, seed="0-7", results_dir="runs")
