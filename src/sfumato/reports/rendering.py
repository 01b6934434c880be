"""Fills the templates of pages: all text is escaped, and a fact that is missing is an error."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

__all__ = ["Markup", "render"]


def render(template: str, **facts: object) -> str:
    """Fill a template with facts.

    Guarantee: text is escaped, and only :class:`~markupsafe.Markup` is not. Assumes: whoever makes a ``Markup`` holds
    no text from outside in it that is not escaped: only drawings, whose labels are XML text, and the page's own style.

    >>> render("snippet.html", table=None, line="a < b", covers="")
    '<div><p>a &lt; b</p></div>'
    """
    return _environment().get_template(template).render(**facts)


def powers(text: str) -> Markup:
    """Text for a page, escaped, in which the exponents of e stand above the line.

    >>> print(powers("a < e^ε"))
    a &lt; e<sup>ε</sup>
    """
    return Markup(escape(text).replace("e^ε", Markup("e<sup>ε</sup>")))  # noqa: S704 - escaped


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("sfumato.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["powers"] = powers
    return made
