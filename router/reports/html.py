"""A report as one HTML page: no script, nothing from elsewhere, every text escaped."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from router.reports.document import Report


def html(report: Report) -> str:
    """The page. Pictures are markup of our own, with their texts escaped where they are drawn."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["picture"] = Markup
    source = files("router.reports").joinpath("report.html").read_text("utf-8")
    return environment.from_string(source).render(report=report)
