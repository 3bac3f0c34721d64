"""One self-contained page about a fitted model: `write_report`, or `model.report(path)`.

facts (`described`) → sections (`regression`, `motion`), with pictures (`drawings`, `pathfigure`), doubts (`concerns`)
and the fingerprint of the data (`fingerprint`) → HTML (`page`, `style`) → a file that appears whole.
"""

from ardea.show.report.build import report_page, write_report

__all__ = ["report_page", "write_report"]
