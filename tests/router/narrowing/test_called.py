"""What an endpoint is whatever it is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regions.model import Endpoint, Price
from router.narrowing.called import alone, bearing, called

FLEET = Endpoint("fra", "vllm", "self", "m", "self:fra1", ("http://a:1/v1", "http://b:1/v1"))
CLOUD = Endpoint("eu", "bedrock", "aws", "eu.m", "aws:eu-central-1", credentials="instance-role")


@pytest.mark.parametrize("one", [FLEET, CLOUD], ids=["fleet", "cloud"])
def test_a_name_and_what_it_costs_are_no_part_of_it(one: Endpoint) -> None:
    other = replace(one, name="x", price=Price(1, 2), context_tokens=9, features=frozenset({"y"}))
    assert called(one) == called(other) != frozenset()


@pytest.mark.parametrize(
    "other",
    [
        replace(CLOUD, model="eu.other"),
        replace(CLOUD, source="aws:eu-west-1"),
        replace(CLOUD, credentials="env:OTHER"),
        replace(CLOUD, provider="azure"),
        replace(CLOUD, urls=("https://a",)),
        replace(CLOUD, settings={"replicas": "file:a.txt"}),
    ],
)
def test_what_is_called_elsewhere_or_as_somebody_else_is_another(other: Endpoint) -> None:
    assert not called(CLOUD) & called(other)


def test_one_server_of_a_fleet_is_enough() -> None:
    was = alone("fra", {"fra": called(FLEET)})
    half = replace(FLEET, name="x", urls=("http://b:1/v1/", "http://c:1/v1"))
    assert list(bearing(was, {"x": called(half), "eu": called(CLOUD)})) == ["x"]


def test_what_others_call_too_is_not_its_own() -> None:
    half = replace(FLEET, name="x", urls=("http://b:1/v1",))
    both = {"fra": called(FLEET), "x": called(half)}
    assert list(bearing(alone("fra", both), both)) == ["fra"]
    assert alone("x", both) == alone("gone", both) == ()
