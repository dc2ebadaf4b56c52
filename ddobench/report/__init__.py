"""Tables, figures and one page from the stored runs; never a run itself."""

from ddobench.report.writer import Written, write_report

__all__ = ["Written", "write_report"]
