"""Build of the compiled loops, and the texts of warnings; all else is in pyproject.toml.

Without a compiler the package still installs.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_py import build_py

# The same sources give the same wheel, whoever builds it and where: the builder's umask would show in the modes of its
# files, and debug information (-g0: none) would name the folder of the build.
os.umask(0o022)
LOOPS = ("core/_compiled", "core/_subsets", "dynamics/_chain", "estimators/_looks")

extensions = cythonize(
    [
        Extension(f"ardea.{name.replace('/', '.')}", [f"src/ardea/{name}.pyx"], extra_compile_args=["-O3", "-g0"])
        for name in LOOPS
    ]
)
for extension in extensions:
    extension.optional = True  # cythonize does not hand it on


class WithTexts(build_py):
    """Takes the pages about warnings along, which `ardea.explain` prints: they stand in the docs, and nowhere else."""

    def run(self) -> None:
        """Copy modules, then the pages."""
        super().run()
        if not self.editable_mode:  # there they are read where they stand
            folder = Path(self.build_lib) / "ardea" / "explained"
            self.mkpath(str(folder))
            for page in sorted(Path("docs/warnings").glob("*.md")):
                self.copy_file(str(page), str(folder / page.name))


setup(ext_modules=extensions, cmdclass={"build_py": WithTexts})
