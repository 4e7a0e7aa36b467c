"""What AWS says now, judged by the same rules as the footprint."""

from __future__ import annotations

from regions.catalog import Catalog, epoch
from regions.footprints.bedrock import Form
from regions.model import Endpoint
from router.narrowing.drifted import covers
from router.watch.seen import Seen, asks_for, regions_of, seen_footprint

CATALOG = Catalog.load({})
NOW = epoch(CATALOG.date) + 86_400
EU = "eu.anthropic.claude-sonnet-4-6"


def endpoint(model: str = EU, **settings: str) -> Endpoint:
    return Endpoint("a", "bedrock", "aws", model, "eu-central-1", settings=settings)


def arns(*regions: str) -> tuple[str, ...]:
    return tuple(f"arn:aws:bedrock:{one}::foundation-model/anthropic.x" for one in regions)


def places(one: Endpoint, seen: Seen) -> tuple[str, ...]:
    return seen_footprint(one, CATALOG, seen, NOW).process.ids


def test_nothing_seen_is_the_footprint_itself() -> None:
    assert "aws:eu-west-1" in places(endpoint(), Seen())


def test_members_replace_those_of_the_catalog() -> None:
    seen = Seen(arns("eu-central-1", "eu-west-2"))
    assert places(endpoint(), seen) == ("aws:eu-central-1", "aws:eu-west-2")
    stated = endpoint(resolves_to=" ".join(arns("us-east-1")))
    assert places(stated, seen) == ("aws:eu-central-1", "aws:eu-west-2")


def test_a_member_without_a_region_may_be_anywhere() -> None:
    assert places(endpoint(), Seen(arns("eu-central-1", ""))) == (
        "aws:eu-central-1", "elsewhere:aws",
    )  # fmt: skip


def test_a_region_that_nobody_knows_is_unknown() -> None:
    assert "unknown" in places(endpoint(), Seen(arns("eu-central-9")))
    assert "unknown" in places(endpoint(), Seen(("arn:of:something:else",)))


def test_no_members_at_all_are_unknown() -> None:
    assert places(endpoint(), Seen(())) == ("unknown",)


def test_the_guardrail_s_own_profile_counts() -> None:
    bare = endpoint("openai.gpt-oss-120b-1:0", guardrail="g:1", guardrail_profile="none")
    assert places(bare, Seen()) == ("aws:eu-central-1",)
    assert "aws:eu-west-1" in places(bare, Seen(guardrail_profile="eu.guardrail.v1:0"))


def test_the_loosest_retention_mode_counts() -> None:
    one = endpoint(retention_mode="none")
    own = seen_footprint(one, CATALOG, Seen(), NOW)
    assert own.retain.is_nothing
    mixed = seen_footprint(one, CATALOG, Seen(modes=frozenset({"none", "default"})), NOW)
    assert not mixed.retain.is_nothing
    assert not covers(own, mixed)
    shared = seen_footprint(one, CATALOG, Seen(modes=frozenset({"provider_data_share"})), NOW)
    assert not shared.retain.is_known


def test_what_there_is_to_ask() -> None:
    facts = CATALOG.bedrock
    start = "arn:aws:bedrock:eu-central-1:123456789012"
    assert asks_for(endpoint(), facts) is Form.GEOGRAPHIC
    assert asks_for(endpoint(f"{start}:prompt-router/x"), facts) is Form.ROUTER
    assert asks_for(endpoint(f"{start}:application-inference-profile/x"), facts) is Form.APPLICATION
    assert asks_for(endpoint("global.anthropic.claude-sonnet-4-6"), facts) is None
    assert asks_for(endpoint("openai.gpt-oss-120b-1:0"), facts) is None


def test_regions_of_arns() -> None:
    assert regions_of(arns("eu-west-1", "", "eu-west-1")) == ("any", "eu-west-1")
    assert regions_of(("broken",)) == ("any",)
