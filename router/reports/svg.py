"""The few marks that the pictures are drawn with. Every text and value is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from xml.sax.saxutils import escape, quoteattr

INK: Final = "#1b2733"
MUTED: Final = "#5b6b7a"
LAND: Final = "#dfe5ea"
LINE: Final = "#c3ccd4"
BLUE: Final = "#1f6fb2"
AMBER: Final = "#c77700"
RED: Final = "#b3261e"


def tag(name: str, attributes: Mapping[str, object], inner: str = "") -> str:
    """One element; `inner` is markup already made here."""
    shown = "".join(f" {key}={quoteattr(_value(value))}" for key, value in attributes.items())
    return f"<{name}{shown}>{inner}</{name}>" if inner else f"<{name}{shown}/>"


def text(
    x: float, y: float, words: str, size: float = 11, anchor: str = "start", fill: str = INK,
    weight: str = "normal",
) -> str:  # fmt: skip
    """Words at a place."""
    attributes = {"x": x, "y": y, "font-size": size, "text-anchor": anchor, "fill": fill,
                  "font-weight": weight}  # fmt: skip
    return tag("text", attributes, escape(words))


def titled(mark: str, words: str) -> str:
    """A mark with words that show when it is pointed at."""
    return tag("g", {}, tag("title", {}, escape(words)) + mark)


def picture(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    """A whole image."""
    return tag(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {_value(width)} {_value(height)}",
            "role": "img",
            "aria-label": label,
            "font-family": "Helvetica, Arial, 'DejaVu Sans', sans-serif",
        },
        "".join(parts),
    )


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
