"""New designs from rows that people bring: `ddobench.propose` and its command line."""
