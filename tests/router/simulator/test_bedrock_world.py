from __future__ import annotations

import pytest

from router.simulator.bedrock_world import (
    BedrockError,
    BedrockWorld,
    Guardrail,
    Profile,
    model_arns,
    partition,
)

ROUTER = "arn:aws:bedrock:eu-west-1:123456789012:prompt-router/r1"
WORLD = BedrockWorld.of(
    {
        "eu.a.m": {"eu-west-1": ["eu-west-1", "eu-west-3"]},
        "global.a.m": {"eu-west-1": ["sa-east-1"]},
    },
    {"eu-west-1": ["a.m-old"], "eusc-de-east-1": ["a.m"]},
    more=[Profile("r1", "eu-west-1", "a.m", ("eu-west-1",), arn=ROUTER)],
    guardrails=[Guardrail("g", "eu-west-1", "3")],
)  # fmt: skip


@pytest.mark.parametrize(
    ("identifier", "source", "destinations"),
    [
        ("a.m-old", "eu-west-1", ("eu-west-1",)),
        ("eu.a.m", "eu-west-1", ("eu-west-1", "eu-west-3")),
        ("arn:aws:bedrock:eu-west-1:1:inference-profile/global.a.m", "eu-west-1", ("sa-east-1",)),
        (ROUTER, "eu-west-1", ("eu-west-1",)),
        ("arn:aws-eusc:bedrock:eusc-de-east-1::foundation-model/a.m", "eusc-de-east-1",
         ("eusc-de-east-1",)),
    ],
)  # fmt: skip
def test_identifiers_resolve_at_their_source(
    identifier: str, source: str, destinations: tuple[str, ...]
) -> None:
    assert WORLD.resolve(identifier, source).destinations == destinations


@pytest.mark.parametrize(
    ("identifier", "source"),
    [
        ("eu.a.m", "eu-west-2"),
        ("a.m-old", "eu-west-2"),
        ("arn:aws:bedrock:eu-west-2::foundation-model/a.m-old", "eu-west-1"),
        ("arn:aws:bedrock:eusc-de-east-1::foundation-model/a.m", "eusc-de-east-1"),
        (ROUTER.replace("r1", "r2"), "eu-west-1"),
        ("", "eu-west-1"),
    ],
)
def test_others_do_not(identifier: str, source: str) -> None:
    with pytest.raises(BedrockError, match="invalid"):
        WORLD.resolve(identifier, source)


def test_a_model_only_offered_by_profile_says_so() -> None:
    with pytest.raises(BedrockError, match="inference profile that contains this model"):
        WORLD.resolve("a.m", "eu-west-1")


def test_global_profiles_list_a_model_without_region() -> None:
    found = WORLD.profile("global.a.m", "eu-west-1")
    assert found is not None
    assert model_arns(found)[0] == "arn:aws:bedrock:::foundation-model/a.m"
    assert WORLD.profile_arn(found).endswith(":inference-profile/global.a.m")


def test_guardrails_are_found_by_id_arn_version_and_region() -> None:
    assert WORLD.guardrail("g", "3", "eu-west-1").id == "g"
    assert WORLD.guardrail("arn:aws:bedrock:eu-west-1:1:guardrail/g", "DRAFT", "eu-west-1").id
    for arguments in (("g", "1", "eu-west-1"), ("g", "3", "eu-west-2"), ("h", "3", "eu-west-1")):
        with pytest.raises(BedrockError, match="does not exist"):
            WORLD.guardrail(*arguments)


def test_partitions() -> None:
    regions = ("eu-west-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1")
    assert [partition(region) for region in regions] == [
        "aws", "aws-us-gov", "aws-cn", "aws-eusc",
    ]  # fmt: skip
