"""The provider contract's own parts."""

from collections.abc import Callable

import pytest

from regions.health import Sign
from regions.model import Endpoint
from router.answers.outcomes import Failed
from router.errors import RequestError
from router.providers.base import Ask, AwsKeys, Bearer, Failure, Kind, Target, refuse_places
from router.transport.messages import Fate


def test_secrets_stay_out_of_repr() -> None:
    target = Target("https://h", Bearer("sk-secret"))
    keys = Target("", AwsKeys("AKIDSECRET", "shh-secret", "tok-secret"))
    assert "secret" not in (repr(target) + repr(keys)).lower()


@pytest.mark.parametrize("secret", ["", "a b", "shh\r\nx: y", "schlüssel-shh", "shh\x00"])
def test_a_secret_that_no_header_carries_is_not_shown(secret: str) -> None:
    for make in (Bearer, lambda s: AwsKeys("AKID", s), lambda s: AwsKeys("AKID", "x", s or " ")):
        with pytest.raises(ValueError, match="credential") as caught:
            make(secret)
        assert "shh" not in repr(caught.value)


@pytest.mark.parametrize(
    ("options", "wants"),
    [
        (None, False), ({}, False), ({"include_usage": True}, True), ("include_usage", False),
        ({"include_usage": False}, False), ({"include_usage": 1}, False), ([], False),
    ],
)  # fmt: skip
def test_wants_usage(ask: Callable[..., Ask], options: object, wants: bool) -> None:
    assert ask(stream=True, stream_options=options).wants_usage is wants


def test_a_differing_place_parameter_is_refused(endpoint: Callable[..., Endpoint]) -> None:
    there = endpoint(settings={"inference_geo": "eu"})
    refuse_places(frozenset({"inference_geo"}), {"inference_geo": "eu"}, there)
    refuse_places(frozenset({"inference_geo"}), {"inference_geo": None}, there)
    refuse_places(frozenset({"inference_geo"}), {"other": "us"}, there)
    with pytest.raises(RequestError) as caught:
        refuse_places(frozenset({"inference_geo"}), {"inference_geo": "us"}, there)
    assert caught.value.code == "parameter_changes_place"
    assert caught.value.param == "inference_geo"
    assert "`us`" not in caught.value.message


@pytest.mark.parametrize("kind", list(Kind))
def test_a_client_at_fault_harms_nobody(kind: Kind) -> None:
    failure = Failure(kind, "m")
    assert failure.clients == (kind in {Kind.CLIENT, Kind.REFUSED, Kind.CONTEXT_LENGTH})
    told = Failed.told(failure, Fate.REFUSED)
    assert (told.clients is not None) == failure.clients
    # What a model made of one request is held against nobody either, and ends nothing.
    assert (told.sign is Sign.CLIENT) == (failure.clients or kind is Kind.UNUSABLE)
