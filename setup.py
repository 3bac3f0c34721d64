"""Build of the compiled outer loop; all else is in pyproject.toml. Without a compiler the package still installs."""

from Cython.Build import cythonize
from setuptools import Extension, setup

extensions = cythonize([Extension("ardea.core._loop", ["src/ardea/core/_loop.pyx"], extra_compile_args=["-O3"])])
for extension in extensions:
    extension.optional = True  # cythonize does not hand it on
setup(ext_modules=extensions)
