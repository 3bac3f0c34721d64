"""Build of the compiled outer loop; all else is in pyproject.toml. Without a compiler the package still installs."""

from Cython.Build import cythonize
from setuptools import Extension, setup

loop = Extension("ardea.core._loop", ["src/ardea/core/_loop.pyx"], extra_compile_args=["-O3"], optional=True)
setup(ext_modules=cythonize([loop], language_level=3))
