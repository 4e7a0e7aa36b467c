from __future__ import annotations

import pytest

from router.reconcile import names


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("arn:aws:bedrock:eu-central-1:1:inference-profile/eu.a.m-v1:0", "eu.a.m-v1:0"),
        ("arn:aws:bedrock:eu-west-1::foundation-model/a.m", "a.m"),
        ("eu.a.m-v1:0", "eu.a.m-v1:0"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        # Opaque: two of them may be the same model, and are not the same thing.
        ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x1",) * 2,
    ],
)
def test_models(name: str, plain: str) -> None:
    assert names.model(name) == plain


def test_the_session_of_a_role_is_nobody() -> None:
    assert names.principal("arn:aws:sts::1:assumed-role/router/i-0a") == (
        "arn:aws:sts::1:assumed-role/router"
    )
    assert names.principal("arn:aws:iam::1:user/a/b") == "arn:aws:iam::1:user/a/b"
    assert names.principal("arn:aws:sts::1:assumed-role/router") == (
        "arn:aws:sts::1:assumed-role/router"
    )


@pytest.mark.parametrize(
    ("places", "place", "inside"),
    [
        ({"aws:eu-west-1"}, "aws:eu-west-1", True),
        ({"aws:eu-west-1"}, "aws:eu-west-2", False),
        ({"elsewhere:aws"}, "aws:xx-new-9", True),
        ({"elsewhere:aws"}, "azure:sweden", False),
        ({"elsewhere:aws"}, "aws:us-gov-west-1", False),
        ({"elsewhere:aws"}, "aws:cn-north-1", False),
        ({"elsewhere:aws"}, "aws:eusc-de-east-1", False),
        ({"area:aws:DE"}, "aws:eu-central-1", False),
        (set(), "aws:eu-west-1", False),
    ],
)
def test_an_open_end_reaches_over_its_partition_only(
    places: set[str], place: str, inside: bool
) -> None:
    assert names.covers(places, place) is inside
