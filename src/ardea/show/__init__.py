"""What a fitted model looks like: pictures, one page about it, and what notebooks show.

Pictures take and return a Matplotlib Axes (or an array of them); colour never carries anything alone.

=============================  ========================================================================================
function                       shows
=============================  ========================================================================================
plot_coefficients              terms with intervals, of every equation of a model
plot_path                      terms kept and criterion against strength
plot_path_coefficients         coefficients against strength
plot_trace                     the objective and the number of terms, step by step, and the certificate
plot_prediction                observed against predicted, with the band of a new observation
plot_residuals                 residuals against predictions, against normal quantiles, and their autocorrelation
plot_operating_curves          terms missed against false terms, for true terms of given t-statistics
plot_equation_residuals        whitened residuals of every equation of a `Discovery`
plot_simulation                the found equations run from a start, with bands, next to data
plot_phase                     the same in the plane of two states
figure_bytes                   any of them as the content of a PNG, SVG or PDF file
report_page, write_report      one self-contained HTML page about a model
model_html                     what a notebook shows
=============================  ========================================================================================

Everything reads `equations_` and what else a model offers: `canvas` (figures and axes) → `fits`, `paths`, `motion`
(pictures) → `doubts`, `pages` (sentences, tables, templates) → `report`, `notebook`.
"""

from ardea.show.canvas import figure_bytes
from ardea.show.fits import plot_coefficients, plot_prediction, plot_residuals, plot_trace
from ardea.show.motion import plot_equation_residuals, plot_phase, plot_simulation
from ardea.show.notebook import model_html
from ardea.show.paths import plot_operating_curves, plot_path, plot_path_coefficients
from ardea.show.report import report_page, write_report

__all__ = [
    "figure_bytes",
    "model_html",
    "plot_coefficients",
    "plot_equation_residuals",
    "plot_operating_curves",
    "plot_path",
    "plot_path_coefficients",
    "plot_phase",
    "plot_prediction",
    "plot_residuals",
    "plot_simulation",
    "plot_trace",
    "report_page",
    "write_report",
]
