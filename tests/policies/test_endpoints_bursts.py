"""What an endpoint's burst budget says, and what would look as if it limited something."""

from __future__ import annotations

import pytest

from policies.gathered import PolicyFile
from policies.loader import load
from regions.document import DocumentErrors
from regions.model import Burst, Endpoint

PRICE = "price: {input: 3, output: 15},"


def made(burst: str, price: str = PRICE, more: str = "") -> Endpoint:
    text = f"""\
version: 1
regions:
  self:fra1: {{country: DE}}
endpoints:
  far: {{kind: vllm, region: self:fra1, url: "http://far", model: m, operate: [DE], {price}
        {more}
        burst: {burst}}}
"""
    loaded = load([PolicyFile("main.yaml", text.encode())], [])
    return loaded.policy.endpoints["far"]


def test_it_is_said_in_dollars_tokens_or_both() -> None:
    assert made("{dollars: 20/h, output: 8192}").burst == Burst((20_000_000, 3600), None, 8192)
    assert made("{dollars: 2.50/d, output: 10}").burst == Burst((2_500_000, 86400), None, 10)
    both = made("{dollars: 0.29/h, tokens: 5M/d}", more="context: 4096,").burst
    assert both == Burst((290_000, 3600), (5_000_000, 86400))
    assert made("{tokens: 400k/h, output: 10}", price="").burst == Burst(None, (400_000, 3600), 10)


@pytest.mark.parametrize(
    ("burst", "price", "where", "what"),
    [
        ("{}", PRICE, "7:16", "say what may be spent"),
        ("{output: 5}", PRICE, "7:16", "say what may be spent"),
        ("{dollars: 20/h}", PRICE, "7:16", "may be as long as the model lets it"),
        ("{dollars: 20/h, output: 5}", "", "7:26", "counted by the endpoint's `price`"),
        ("{dollars: 20/h, output: 5}", "price: {input: 3},", "7:26", "`input` and `output`"),
        ("{dollars: 20/min, output: 5}", PRICE, "7:26", "per hour or day, as 20/h"),
        ("{dollars: 20, output: 5}", PRICE, "7:26", "per hour or day, as 20/h"),
        ("{dollars: -1/h, output: 5}", PRICE, "7:26", "per hour or day, as 20/h"),
        ("{dollars: 0.0000001/h, output: 5}", PRICE, "7:26", "nothing could ever be spent"),
        ("{tokens: 0/h, output: 5}", PRICE, "7:25", "nothing could ever be spent"),
        ("{tokens: 5k/s, output: 5}", PRICE, "7:25", "as 400k/h or 5M/d"),
        ("{tokens: 5k/h, output: 0}", PRICE, "7:39", "greater than or equal to 1"),
        ("{euros: 5/h, output: 5}", PRICE, "7:17", "euros"),
    ],
)
def test_what_limits_nothing_is_refused_where_it_stands(
    burst: str, price: str, where: str, what: str
) -> None:
    with pytest.raises(DocumentErrors) as caught:
        made(burst, price)
    (error,) = caught.value.errors
    assert what in str(error)
    assert str(error).startswith(f"main.yaml:{where}: ")
