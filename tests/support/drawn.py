"""What the tests of figures ask of every drawing."""

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Figure, FigureFunction


def only(function: FigureFunction, stored: ReportData) -> Figure:
    """Return the single figure that a function draws."""
    (figure,) = function(stored)
    assert isinstance(figure, Figure)
    return figure


def overflow(figure: Figure) -> float:
    """Return by how many inches a drawing hangs over its page."""
    width, height = figure.drawing.get_size_inches()
    outer = figure.drawing.get_tightbbox()
    return float(max(-outer.x0, -outer.y0, outer.x1 - width, outer.y1 - height))
