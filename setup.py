"""Build of the compiled loops; all else is in pyproject.toml. Without a compiler the package still installs."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

# The same sources give the same wheel, whoever builds it and where: the builder's umask would show in the modes of its
# files, and debug information (-g0: none) would name the folder of the build.
os.umask(0o022)
LOOPS = ("core/_compiled", "dynamics/_chain")

extensions = cythonize(
    [
        Extension(f"ardea.{name.replace('/', '.')}", [f"src/ardea/{name}.pyx"], extra_compile_args=["-O3", "-g0"])
        for name in LOOPS
    ]
)
for extension in extensions:
    extension.optional = True  # cythonize does not hand it on
setup(ext_modules=extensions)
