"""The seven estimators: each names a combination of parts (inflation, prior, threshold) of the one outer loop.

validate → compress → solve → attributes is in :mod:`ardea.estimators.base`; the loop is :mod:`ardea.core.reweighted`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ardea import rates
from ardea.core.evidence import slopes_and_scores
from ardea.core.loop import Learned
from ardea.core.problem import Array
from ardea.core.result import Fit, Status, posterior, worst
from ardea.estimators.base import BaseARD
from ardea.estimators.inputs import checked_strength
from ardea.methods.task import Task
from ardea.methods.thresholds import Likelihood, Magnitude, MaximumAPosteriori, Search
from ardea.priors import Both, CappedLinear, Convex, Flat, InCoordinates, Prior

# ARDr warns where its prior has driven σ² this far above that of least squares on the same support.
OVERSHRUNK_RATIO = 4.0
# The calibrated prior of ARDr is set anew until no column goes, at most so often.
MOST_CALIBRATIONS = 20
SEARCHES: tuple[Search, ...] = ("diagonal", "greedy", "forward-backward", "backward")


class ARD(BaseARD):
    """Automatic relevance determination (Alg. 1): prior variances γ that maximise the evidence.

    Minimises L(γ) = log|Σ_y| + yᵀΣ_y⁻¹y with Σ_y = σ²I + ΘΓΘᵀ. Columns with γ = 0 have a coefficient of exactly zero,
    but of columns that explain nothing about 32 % are kept (Eq. VI_FP_rate at α = 1): use :class:`SparseARD` for few
    terms.

    Parameters
    ----------
    noise_variance : float, optional
        σ² if it is known; learned by default.
    fit_intercept : bool, default=True
        Whether a constant is added to the model (flat prior, integrated out).
    always_keep : list of int or str, or boolean mask, optional
        Columns known to belong to the model: flat prior, never pruned.
    max_iter : int, default=500
        Largest number of steps of one run of the outer loop (methods of several stages run it several times); reaching
        it warns.
    tol : float, default=1e-6
        Bound on `kkt_gap_`.
    verbose : int, default=0
        1 prints a line per fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Posterior means; exactly zero for dropped terms.
    intercept_ : float or ndarray of shape (n_targets,)
        Posterior mean of the constant.
    support_ : boolean ndarray of the shape of coef_
        Which terms are kept.
    prior_variance_ : ndarray of the shape of coef_
        γ; infinite for `always_keep`.
    noise_variance_ : float or ndarray of shape (n_targets,)
        σ², un-inflated.
    coef_std_ : ndarray of the shape of coef_
        Posterior standard deviations.
    covariance_ : ndarray of shape (k, k), or a list of them
        Posterior covariance of the kept terms.
    log_evidence_ : float or ndarray of shape (n_targets,)
        −½(m ln 2π + log|Σ_y| + yᵀΣ_y⁻¹y) at γ and σ²; m is less one for an intercept and one for every independent
        column in `always_keep`, which are integrated out.
    kkt_gap_ : float or ndarray of shape (n_targets,)
        Certificate: largest relative violation of q² = M on the support and q² ≤ M off it, over the columns that no
        threshold has removed.
    n_iter_ : int or ndarray of shape (n_targets,)
        Steps of the outer loop.
    trace_ : Trace, or a list of them
        Cost, σ² and number of terms at every step; columns dropped by a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = 3 * X[:, 2] + 0.1 * rng.normal(size=200)
    >>> bool(ARD().fit(X, y).support_[2])
    True
    """

    def __init__(
        self,
        *,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        super().__init__(noise_variance, fit_intercept, always_keep, max_iter, tol, verbose)

    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        return task.plain


class ARDvi(BaseARD):
    """ARD with variance inflation (Alg. 2): the noise counts α times in c and in the lasso weights.

    Orthogonal columns are kept if and only if their t-statistic exceeds √α, so α = z² sets the false positive rate
    whatever the units and the noise. rss, posterior and the noise update use the un-inflated σ².

    Parameters
    ----------
    alpha : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Inflation. "calibrated": `false_terms` expected among columns that explain nothing.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARDvi
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> int(ARDvi(alpha=16).fit(X, y).support_.sum())
    1
    """

    strength_name = "alpha"

    def __init__(
        self,
        alpha: Any = "calibrated",
        *,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.false_terms = false_terms
        super().__init__(noise_variance, fit_intercept, always_keep, max_iter, tol, verbose)

    def _strength(self, n_columns: int) -> Array | None:
        return checked_strength("alpha", self.alpha, n_columns, zero_allowed=False)

    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        return task.run_inflated(self._strength(task.problem.n_columns), self.false_terms, near)


class ARDr(BaseARD):
    """ARD with a sparsity-promoting prior on γ (Alg. 3), started at ARD's γ.

    Minimises log|Σ_y| + yᵀΣ_y⁻¹y + Σ g(γ_j) + f(γ_j), by default with g(γ) = lam·min(γ, eta) and f = 0.

    Parameters
    ----------
    lam : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Slope of g.
    eta : float or array of shape (n_features,), optional
        Width of g: columns whose γ exceeds it are not penalised further. None: infinity where `lam` is given; with
        "calibrated" the least width that leaves the false positive rate as it is, so that kept terms are not shrunk.
    prior : ardea.priors.Prior or ardea.priors.Convex, optional
        Replaces `lam` and `eta`: any concave g, convex f, or both (``g & f``).
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import ARDr
    >>> from ardea.priors import CappedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> paper = CappedLinear(1e4, eta=0.1, over_noise=True)  # λσ⁻² min(γ, η), Sec. 6
    >>> int(ARDr(prior=paper).fit(X, y).support_.sum())
    1
    """

    strength_name = "lam"

    def __init__(
        self,
        lam: Any = "calibrated",
        eta: ArrayLike | None = None,
        *,
        prior: Prior | Convex | None = None,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.lam = lam
        self.eta = eta
        self.prior = prior
        self.false_terms = false_terms
        super().__init__(noise_variance, fit_intercept, always_keep, max_iter, tol, verbose)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.prior is not None and not isinstance(self.prior, Prior | Convex):
            raise ValueError(
                f"prior={self.prior!r} is not a prior: give one of ardea.priors, or wrap your functions in "
                "ardea.priors.Concave or ardea.priors.Convex."
            )

    def _strength(self, n_columns: int) -> Array | None:
        self._width(n_columns)
        return checked_strength("lam", self.lam, n_columns)

    def _width(self, n_columns: int) -> Array | None:
        if self.eta is None:
            return None
        eta = checked_strength("eta", self.eta, n_columns, zero_allowed=False, infinity_allowed=True)
        if eta is None:
            raise ValueError("eta='calibrated' is not known: calibrate lam, and give eta as a number.")
        return eta

    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        calibrated = self.prior is None and isinstance(self.lam, str)
        screened = task.screen_where_collapsing(calibrated, self.false_terms)
        first = task.plain if screened is None else screened
        fit = self._calibrated(task, first) if calibrated else self._penalised(task, self._given_prior(task), first)
        status = worst(fit.status, Status.RESCUED if first.status is Status.COLLAPSED else first.status)
        if task.noise_variance is None and fit.noise > OVERSHRUNK_RATIO * _least_squares_noise(task, fit):
            status = worst(status, Status.OVERSHRUNK)
        return replace(fit, status=status)

    @staticmethod
    def _penalised(task: Task, prior: Prior, begin: Fit) -> Fit:
        """Run on from a fit under a prior."""
        fit = task.run(noise=begin.noise, prior=prior, start=begin.gamma)
        return replace(fit, trace=begin.trace.then(fit.trace), n_iter=begin.n_iter + fit.n_iter)

    def _calibrated(self, task: Task, begin: Fit) -> Fit:
        """Run, calibrate the prior again to the σ² found (ARD's is too small by the false columns it keeps), repeat."""
        for _ in range(MOST_CALIBRATIONS):
            fit = self._penalised(task, self._calibrated_prior(task, begin), begin)
            if np.array_equal(fit.gamma > 0, begin.gamma > 0):
                break
            begin = fit
        return fit

    def _given_prior(self, task: Task) -> Prior:
        """Return the user's prior in the problem's coordinates."""
        if self.prior is not None:
            whole = self.prior if isinstance(self.prior, Prior) else Both(Flat(), self.prior)
            return InCoordinates(whole, task.unit**2, task.noise_unit)
        lam, eta = self._strength(task.problem.n_columns), self._width(task.problem.n_columns)
        linear = CappedLinear(0.0 if lam is None else lam, np.inf if eta is None else eta)
        return InCoordinates(linear, task.unit**2, task.noise_unit)

    def _calibrated_prior(self, task: Task, first: Fit) -> Prior:
        """Return λ_j = (z² − 1)s_j and η_j = (z² − 1)/s_j, with s_j the precision of column j against the others.

        On orthogonal columns s_j = ρ_j/σ² and ψ² = v + min(λv², η) with v = 1/s_j: any η ≥ (z² − 1)v has the same cut.
        The least of them stops the penalty where ARD's γ = (t² − 1)/s is that of a column at the cut.
        """
        excess = float(rates.strength_for("vi", task.false_positive_rate(self.false_terms))) - 1
        post = posterior(task.problem, first.gamma, first.noise)
        precision, _ = slopes_and_scores(task.problem, post)  # s_j = M_j where γ_j = 0
        precision[post.active] = post.own_precision
        eta = self._width(task.problem.n_columns)
        width = excess / np.where(precision > 0, precision, 1.0) if eta is None else eta / task.unit**2
        return CappedLinear(excess * precision, np.maximum(width, np.finfo(float).tiny))


def _least_squares_noise(task: Task, fit: Fit) -> float:
    """Return ‖y − Θξ‖²/(m − k) with ξ by least squares on the support, or the floor of σ² where that is higher."""
    degrees = task.problem.n_rows - fit.posterior.active.size
    if degrees <= 0:
        return np.inf
    _, rss = task.problem.least_squares(fit.posterior.active)
    return max(rss / degrees, Learned().floor(task.problem))


class MSTSBL(BaseARD):
    """Magnitude-thresholded ARD (Alg. 4): drop |μ| < tau, refit on what is left, until nothing goes.

    The paper's M-STSBL (threshold sparse Bayesian regression of Zhang & Lin). Depends on the units of the columns
    unless calibrated.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Smallest magnitude that is kept.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import MSTSBL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> model = MSTSBL(tau=0.5).fit(X, y)
    >>> int(model.support_.sum()), model.trace_.dropped[0].round
    (1, 1)
    """

    strength_name = "tau"

    def __init__(
        self,
        tau: Any = "calibrated",
        *,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.tau = tau
        self.false_terms = false_terms
        super().__init__(noise_variance, fit_intercept, always_keep, max_iter, tol, verbose)

    def _strength(self, n_columns: int) -> Array | None:
        return checked_strength("tau", self.tau, n_columns)

    def _rule_unit_power(self) -> int:
        return Magnitude.unit_power

    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        tau = self._strength(task.problem.n_columns)
        strength = task.strength("m", tau, self.false_terms, Magnitude.unit_power)
        return task.threshold(Magnitude(strength), task.screen_where_collapsing(tau is None, self.false_terms))


class LSTSBL(BaseARD):
    """Likelihood-thresholded ARD (Alg. 5): drop columns whose posterior density at zero exceeds tau.

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Largest density N(0 | μ_j, Σ_jj) that is kept; infinity keeps all that ARD keeps.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import LSTSBL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> int(LSTSBL(tau=0.01).fit(X, y).support_.sum())
    1
    """

    strength_name = "tau"

    def __init__(
        self,
        tau: Any = "calibrated",
        *,
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.tau = tau
        self.false_terms = false_terms
        super().__init__(noise_variance, fit_intercept, always_keep, max_iter, tol, verbose)

    def _strength(self, n_columns: int) -> Array | None:
        return checked_strength("tau", self.tau, n_columns, infinity_allowed=True)

    def _rule_unit_power(self) -> int:
        return Likelihood.unit_power

    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        tau = self._strength(task.problem.n_columns)
        strength = task.strength("l", tau, self.false_terms, Likelihood.unit_power)
        return task.threshold(Likelihood(strength), task.screen_where_collapsing(tau is None, self.false_terms))


class MAPSTSBL(BaseARD):
    """MAP-thresholded ARD (Alg. 6): drop the set of columns that maximises the posterior under exp(−τ‖ξ‖₀).

    Parameters
    ----------
    tau : float, array of shape (n_features,) or "calibrated", default="calibrated"
        Price of a term. On orthogonal columns it keeps what ARDvi keeps at α = 2τ + 1.
    search : {"diagonal", "greedy", "forward-backward", "backward"}, default="diagonal"
        How the set is looked for; see :class:`ardea.methods.thresholds.MaximumAPosteriori`.
    false_terms : float, default=1.0
        Expected number of false terms, used with "calibrated".
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import MAPSTSBL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 50))
    >>> y = 3 * X[:, 2] + rng.normal(size=200)
    >>> int(MAPSTSBL(tau=5, search="backward").fit(X, y).support_.sum())
    1
    """

    strength_name = "tau"

    def __init__(
        self,
        tau: Any = "calibrated",
        *,
        search: Search = "diagonal",
        false_terms: float = 1.0,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.tau = tau
        self.search = search
        self.false_terms = false_terms
        super().__init__(noise_variance, fit_intercept, always_keep, max_iter, tol, verbose)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.search not in SEARCHES:
            raise ValueError(f"search={self.search!r} is not known: choose one of {', '.join(map(repr, SEARCHES))}.")

    def _strength(self, n_columns: int) -> Array | None:
        return checked_strength("tau", self.tau, n_columns)

    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        tau = self._strength(task.problem.n_columns)
        one_price = tau is None and self.search != "diagonal"
        strength = task.price(self.false_terms) if one_price else task.strength("map", tau, self.false_terms, 0)
        return task.threshold(
            MaximumAPosteriori(strength, self.search), task.screen_where_collapsing(tau is None, self.false_terms)
        )


class SparseARD(BaseARD):
    """The calibrated default: say how many false terms you accept, nothing else.

    1) ARDvi at the inflation that lets max(1, false_terms) false columns through finds the candidates;
    2) ARD on them, from that σ²;
    3) MAP backward elimination on the covariance at the price τ that lets `false_terms` through, restrict, refit, until
       nothing goes.

    Parameters
    ----------
    false_terms : float, default=0.3
        Expected number of terms kept that explain nothing.
    noise_variance, fit_intercept, always_keep, max_iter, tol, verbose
        See :class:`ARD`, also for the fitted attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 300))
    >>> y = 3 * X[:, 2] - 2 * X[:, 5] + rng.normal(size=200)
    >>> print(SparseARD().fit(X, y).summary())
    SparseARD: 2 of 300 terms kept, noise σ = 0.9726; posterior intervals, shrunk a little; kind='refit' for a report
    <BLANKLINE>
    term   coef     std  95% low  95% high
    x2    3.058 0.06266    2.935     3.181
    x5   -1.964 0.07133   -2.104    -1.824
    """

    strength_name = "false_terms"

    def __init__(
        self,
        *,
        false_terms: float = 0.3,
        noise_variance: float | None = None,
        fit_intercept: bool = True,
        always_keep: Any = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        verbose: int = 0,
    ) -> None:
        self.false_terms = false_terms
        super().__init__(noise_variance, fit_intercept, always_keep, max_iter, tol, verbose)

    def _solve_one(self, task: Task, near: Fit | None = None) -> Fit:
        rule = MaximumAPosteriori(task.price(self.false_terms), "backward")
        return task.threshold(rule, task.screened(self.false_terms))
