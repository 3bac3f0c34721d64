"""Pictures: each takes and returns a Matplotlib Axes (or an array of them), reads in grey, and fits a paper's column.

=============================  ========================================================================================
function                       shows
=============================  ========================================================================================
plot_coefficients              terms with intervals, of an estimator or of every equation of a `Discovery`
plot_path                      terms kept and criterion against strength
plot_path_coefficients         coefficients against strength
plot_trace                     the objective and the number of terms, step by step, and the certificate
plot_prediction                observed against predicted, with the band of a new observation
plot_residuals                 residuals against predictions, against normal quantiles, and their autocorrelation
plot_operating_curves          terms missed against false terms, for true terms of given t-statistics
plot_equation_residuals        whitened residuals of every equation of a `Discovery`
plot_simulation                the found equations run from a start, with bands, next to data
plot_phase                     the same in the plane of two states
=============================  ========================================================================================
"""

from ardea.show.plots.canvas import figure_bytes, figure_of, offscreen
from ardea.show.plots.convergence import plot_trace
from ardea.show.plots.dynamics import plot_equation_residuals, plot_phase, plot_simulation
from ardea.show.plots.operating import plot_operating_curves
from ardea.show.plots.paths import plot_path, plot_path_coefficients
from ardea.show.plots.rows import plot_prediction, plot_residuals
from ardea.show.plots.terms import plot_coefficients

__all__ = [
    "figure_bytes",
    "figure_of",
    "offscreen",
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
]
