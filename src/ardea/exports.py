"""A fitted model in the words of other programs: posterior draws for ArviZ, an expression for SymPy, plain Python.

Each takes an estimator of Ardea, or an ARDSearch (its chosen model).
"""

from __future__ import annotations

import keyword
import unicodedata
import warnings
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ardea.core.columns import Array
from ardea.equation import Terms
from ardea.estimators.base import BaseARD
from ardea.estimators.search import ARDSearch


def to_arviz(model: BaseARD | ARDSearch, n_draws: int = 1000, random_state: Any = None) -> Any:
    """Return draws from the posterior as ArviZ's InferenceData (a DataTree from ArviZ 1.0 on).

    The group `posterior` has one chain of independent draws: `coef` of the kept terms (dimension `term`), equal to
    ``model.sample(n_draws, random_state)``, and `intercept` given them where there is one. γ and σ² are fixed at their
    estimates, so they are not drawn; σ² is the attribute `noise_variance`. With several targets there is a dimension
    `target`, and a term dropped for one of them is zero there.

    Parameters
    ----------
    model : estimator of ardea or ARDSearch
        Fitted.
    n_draws : int, default=1000
        Number of draws.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.exports import to_arviz
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(200, 10))
    >>> model = SparseARD().fit(X, 2 * X[:, 3] + rng.normal(size=200))
    >>> draws = to_arviz(model, n_draws=100, random_state=0).posterior
    >>> dict(draws["coef"].sizes), draws["term"].values.tolist()
    ({'chain': 1, 'draw': 100, 'term': 1}, ['x3'])
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # that ArviZ itself is going to change
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz() needs ArviZ: pip install 'ardea[arviz]'.") from error
    fitted = _fitted(model)
    generator = check_random_state(random_state)
    coefficients = fitted.sample(n_draws, generator).reshape(len(fitted._terms), -1, fitted.n_features_in_)
    kept = np.flatnonzero(fitted.get_support())
    names = _names(fitted)
    variables = {"coef": _by_draw(coefficients[:, :, kept], fitted)}
    targets = [] if fitted._one_target else ["target"]
    dims = {"coef": [*targets, "term"]}
    if fitted.fit_intercept:
        pairs = zip(fitted._terms, coefficients, strict=True)
        intercepts = np.array([_intercepts(terms, draws, generator) for terms, draws in pairs])
        variables["intercept"], dims["intercept"] = _by_draw(intercepts, fitted), targets
    coords: dict[str, Any] = {"term": [names[j] for j in kept]}
    coords |= {} if fitted._one_target else {"target": [f"y{t}" for t in range(len(fitted._terms))]}
    if "InferenceData" in vars(arviz):  # asking for the attribute makes ArviZ 1 warn
        data = arviz.from_dict(posterior=variables, coords=coords, dims=dims)
    else:
        data = arviz.from_dict({"posterior": variables}, coords=coords, dims=dims)
    data["posterior"].attrs["noise_variance"] = fitted.noise_variance_
    return data


def _by_draw(values: Array, fitted: BaseARD) -> Array:
    """Return (targets, draws, …) as (1 chain, draws, [targets,] …)."""
    moved = np.moveaxis(values, 0, 1)[None]
    return moved[:, :, 0] if fitted._one_target else moved


def _intercepts(terms: Terms, draws: Array, generator: np.random.RandomState) -> Array:
    """Draw the intercept given draws of all coefficients (n, d).

    The flat coefficients β = (b, β_k), the intercept first, are N(h − Hξ, σ²G) given ξ, G = (FᵀF)⁻¹. Given β_k too,

        b ~ N(h_b − H_bξ + w(β_k − h_k + H_kξ), σ²(G_bb − wG_kb)),    w = G_bk G_kk⁻¹.
    """
    gram, centre = terms.inverse_gram, terms.target_loadings - draws[:, terms.active] @ terms.loadings.T
    weights = gram[0, 1:] @ np.linalg.pinv(gram[1:, 1:])
    mean = centre[:, 0] + (draws[:, terms.kept] - centre[:, 1:]) @ weights
    variance = terms.posterior.noise * max(float(gram[0, 0] - weights @ gram[1:, 0]), 0.0)
    return np.asarray(mean + np.sqrt(variance) * generator.standard_normal(len(draws)))


def to_sympy(model: BaseARD | ARDSearch) -> Any:
    """Return the prediction as a SymPy expression of the kept columns; a list of them for several targets.

    Parameters
    ----------
    model : estimator of ardea or ARDSearch
        Fitted. Symbols are named by its columns, x0, x1, … where they have no names. Coefficients keep all digits.

    Returns
    -------
    sympy.Expr or list of sympy.Expr

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.exports import to_sympy
    >>> X = np.random.default_rng(0).normal(size=(50, 5))
    >>> model = SparseARD(fit_intercept=False).fit(X, 2 * X[:, 3] - X[:, 1])
    >>> to_sympy(model).evalf(3)
    -1.0*x1 + 2.0*x3
    """
    try:
        import sympy
    except ImportError as error:
        raise ImportError("to_sympy() needs SymPy: pip install 'ardea[symbolic]'.") from error
    fitted = _fitted(model)
    names = _names(fitted)
    kept = [names[j] for j in np.flatnonzero(fitted.get_support())]
    if len(set(kept)) != len(kept):
        raise ValueError("Two kept columns have the same name: rename them, or fit arrays without names.")
    expressions = []
    for intercept, pairs in _sums(fitted):
        parts = [sympy.Float(value) * sympy.Symbol(names[j]) for j, value in pairs]
        expressions.append(sympy.Add(*parts, *([sympy.Float(intercept)] if fitted.fit_intercept else [])))
    return expressions[0] if fitted._one_target else expressions


def to_python(model: BaseARD | ARDSearch, name: str = "predict") -> str:
    """Return the source of a plain function of the kept columns; it needs no package.

    Its arguments are the kept columns, as numbers or arrays, in their order in X. They bear the columns' names where
    all of these are valid and different names in Python, else x and their position. Several targets give a tuple.
    Numbers are written with all digits. Nothing but numbers and names gets into the code, whatever the columns are
    called.

    Parameters
    ----------
    model : estimator of ardea or ARDSearch
        Fitted.
    name : str, default="predict"
        Name of the function.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from ardea import SparseARD
    >>> from ardea.exports import to_python
    >>> X = np.eye(6)[np.arange(60) % 6] * np.arange(60)[:, None]
    >>> y = 2 * X[:, 3] - X[:, 1] + np.eye(60)[0]  # an error in the first row, where all columns are zero
    >>> model = SparseARD(fit_intercept=False, noise_variance=1.0, always_keep=[1, 3]).fit(X, y)
    >>> source = to_python(model)
    >>> source.splitlines()[0]
    'def predict(x1, x3):'
    """
    if not _is_plain_name(name):
        raise ValueError(f"name={name!r} is not a valid name for a function in Python.")
    fitted = _fitted(model)
    names = _names(fitted)
    kept = [int(j) for j in np.flatnonzero(fitted.get_support())]
    sound = all(_is_plain_name(names[j]) for j in kept) and len({names[j] for j in kept}) == len(kept)
    arguments = {j: names[j] if sound else f"x{j}" for j in kept}
    # !a leaves no character that could end a comment.
    remarks = [] if sound else [f"    # {arguments[j]}: column {names[j]!a}" for j in kept]
    sums = [_python_sum(intercept, pairs, arguments) for intercept, pairs in _sums(fitted)]
    lines = [f"        {text}," for text in sums]
    body = ["    return (", *lines, "    )"] if not fitted._one_target else [f"    return {sums[0]}"]
    title = f'    """Mean of a {type(fitted).__name__} fitted by Ardea."""'
    return "\n".join([f"def {name}({', '.join(arguments.values())}):", title, *remarks, *body]) + "\n"


def _python_sum(intercept: float, pairs: list[tuple[int, float]], arguments: dict[int, str]) -> str:
    """Write b + c*x − d*y; numbers by repr, which gives the same bits when read."""
    text = repr(intercept) if intercept != 0 or not pairs else ""
    for j, value in pairs:
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        text += f"{sign}{abs(value)!r} * {arguments[j]}"
    return text


def _is_plain_name(name: str) -> bool:
    """Whether Python reads the text as one name, the same one, that may be assigned to."""
    normal = unicodedata.normalize("NFKC", name) == name
    return normal and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")


def _fitted(model: BaseARD | ARDSearch) -> BaseARD:
    """Return the fitted estimator behind a model."""
    check_is_fitted(model)
    best = model.best_estimator_ if isinstance(model, ARDSearch) else model
    if not isinstance(best, BaseARD):
        raise TypeError(f"A {type(model).__name__} cannot be exported: give one of ardea's estimators or an ARDSearch.")
    return best


def _names(fitted: BaseARD) -> list[str]:
    names = getattr(fitted, "feature_names_in_", None)
    return [f"x{j}" for j in range(fitted.n_features_in_)] if names is None else [str(name) for name in names]


def _sums(fitted: BaseARD) -> list[tuple[float, list[tuple[int, float]]]]:
    """Return for every target the intercept and the kept columns with their coefficients."""
    sums = []
    for terms in fitted._terms:
        coefficients = terms.coefficients(terms.posterior)
        sums.append((terms.intercept_value, [(int(j), float(coefficients[j])) for j in terms.support]))
    return sums
