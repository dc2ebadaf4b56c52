"""Tables, figures and a page from stored runs; nothing is run."""

from ddobench.report.writer import Written, write_report

__all__ = ["Written", "write_report"]
