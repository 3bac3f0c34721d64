"""Dask: compress every block where it lies, merge the small factors in a tree; the rest is the ordinary core.

`fit`, `partial_fit` and `predict` of the estimators take Dask arrays and data frames themselves. This package is what
they call, and adds features that are evaluated block by block:

- `compress(X, y, sample_weight)`: the rows of Dask collections as one small factor;
- `compress_files(paths, target)`: the same of many files, each read in blocks by one worker;
- `features(library, X)`: Θ of a library of :mod:`ardea.dynamics`, lazily, from states or from fields;
- `field_derivative`, `field_rows`: a derivative of a field on a grid, and a field as the rows that `features` has.

``import ardea`` does not load it, and so needs no Dask.
"""

try:
    import dask.array  # noqa: F401
except ImportError as error:
    raise ImportError("ardea.distributed needs Dask: pip install 'ardea[distributed]'.") from error

from ardea.distributed.compress import BlockError, compress, compress_files
from ardea.distributed.features import features, field_derivative, field_rows

__all__ = ["BlockError", "compress", "compress_files", "features", "field_derivative", "field_rows"]
