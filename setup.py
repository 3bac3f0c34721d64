"""Build of the compiled outer loop; all else is in pyproject.toml. Without a compiler the package still installs."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

# The same sources give the same wheel, whoever builds it and where: the builder's umask would show in the modes of its
# files, and debug information (-g0: none) would name the folder of the build.
os.umask(0o022)
LOOP = Extension("ardea.core._compiled", ["src/ardea/core/_compiled.pyx"], extra_compile_args=["-O3", "-g0"])

extensions = cythonize([LOOP])
for extension in extensions:
    extension.optional = True  # cythonize does not hand it on
setup(ext_modules=extensions)
