"""What a fitted model looks like: pictures, one page about it, and what notebooks show.

Pictures take and return a Matplotlib Axes (or an array of them); colour never carries anything alone.

Everything reads `equations_` and what else a model offers: `canvas` (figures and axes) → `fits`, `motion`
(pictures) → `answers` (numbers, sentences) → `report` (pages about a model, and the methods of models that call all
this).
"""

from ardea.show.canvas import figure_bytes
from ardea.show.fits import (
    plot_coefficients,
    plot_operating_curves,
    plot_pareto,
    plot_path,
    plot_path_coefficients,
    plot_prediction,
    plot_residuals,
)
from ardea.show.motion import (
    plot_equation_residuals,
    plot_experiments,
    plot_phase,
    plot_simulation,
    plot_states,
    plot_variation,
)
from ardea.show.report import model_html, report_page, write_report

__all__ = [
    "figure_bytes",
    "model_html",
    "plot_coefficients",
    "plot_equation_residuals",
    "plot_experiments",
    "plot_operating_curves",
    "plot_pareto",
    "plot_path",
    "plot_path_coefficients",
    "plot_phase",
    "plot_prediction",
    "plot_residuals",
    "plot_simulation",
    "plot_states",
    "plot_variation",
    "report_page",
    "write_report",
]
