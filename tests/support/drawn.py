"""Drawing figures, for their tests."""

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing

from ddobench.report.data import ReportData
from ddobench.report.figures.draw import LOOK
from ddobench.report.figures.figure import Figure, FigureFunction


def only(function: FigureFunction, stored: ReportData) -> Figure:
    """Return the single figure that a function yields."""
    (figure,) = function(stored)
    return figure


def draw(figure: Figure) -> Drawing:
    """Draw a figure as for rendering."""
    with mpl.rc_context(LOOK):
        return figure.plot.draw(figure.data)


def overflow(drawing: Drawing) -> float:
    """Return by how many inches a drawing exceeds its page."""
    width, height = drawing.get_size_inches()
    outer = drawing.get_tightbbox()
    return float(max(-outer.x0, -outer.y0, outer.x1 - width, outer.y1 - height))
