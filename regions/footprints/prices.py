"""What an endpoint's place costs beside the vendor's other places. No decision reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from regions.document import parse_as
from regions.facts import BedrockFacts
from regions.footprints.bedrock import Form, read_identifier
from regions.model import Endpoint


class Relative(BaseModel):
    """A price in words, beside the vendor's others, with where that is said.

    `vendor` is an endpoint kind; `what` a form of Bedrock's, or hosts, geographies and locations.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    vendor: str = Field(alias="for")
    what: str
    price: str
    source: str


class PricesFile(BaseModel):
    """`prices.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    checked_on: date
    prices: tuple[Relative, ...]


@cache
def prices() -> PricesFile:
    """The file; read once, never changed."""
    content = files("regions.footprints").joinpath("prices.yaml").read_bytes()
    return parse_as(content, "regions/footprints/prices.yaml", PricesFile)[1]


def relative_price(endpoint: Endpoint, facts: BedrockFacts) -> Relative | None:
    """What is said of this endpoint's place; `None` where nothing is."""
    named = frozenset(_named(endpoint, facts))
    for row in prices().prices:
        whats = {row.what, *row.what.split()}
        if row.vendor == endpoint.kind and not named.isdisjoint(whats):
            return row
    return None


def _named(endpoint: Endpoint, facts: BedrockFacts) -> Iterator[str]:
    if endpoint.kind.startswith("bedrock"):
        form = read_identifier(endpoint.model, facts).form
        yield Form.BARE if form is Form.MODEL_ARN else form
        return
    for url in endpoint.urls:
        yield (urlsplit(url).hostname or url) if "//" in url else url
    yield from (endpoint.settings.get(name, "") for name in ("inference_geo", "location"))
