from collections.abc import Callable

import pytest

from regions.boundaries import boundary
from regions.catalog import DAY, Catalog, epoch, package_data
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.bedrock import Form, needs_profile, profiles_of, read_identifier
from regions.model import Endpoint, Footprint

SONNET = "anthropic.claude-sonnet-4-6"
SIX = {f"aws:eu-{x}" for x in ("central-1", "north-1", "south-1", "south-2", "west-1", "west-3")}
Ask = Callable[..., Footprint]


@pytest.fixture
def ask(catalog: Catalog, now: float) -> Ask:
    def asked(model: str, source: str, kind: str = "bedrock", **settings: str) -> Footprint:
        endpoint = Endpoint("e", kind, "aws", model, source=source, settings=settings)
        return footprint(endpoint, PLAIN_CALL, catalog, now)

    return asked


def places(found: Footprint) -> set[str]:
    return set(found.process.ids)


@pytest.mark.parametrize(
    ("model", "source", "expected"),
    [
        (f"eu.{SONNET}", "eu-central-1", SIX),
        (f"eu.{SONNET}", "aws:eu-central-1", SIX),
        (f"eu.{SONNET}", "eu-west-2", SIX | {"aws:eu-west-2"}),
        (f"eu.{SONNET}", "eu-central-2", SIX | {"aws:eu-central-2"}),
        (SONNET, "eu-west-2", {"aws:eu-west-2"}),
        (f"global.{SONNET}", "eu-west-1", {"elsewhere:aws"}),
        ("us.openai.gpt-5.4", "us-west-1", {"aws:us-east-1", "aws:us-east-2", "aws:us-west-2"}),
        ("ca.amazon.nova-lite-v1:0", "ca-central-1", {"aws:ca-central-1", "aws:ca-west-1"}),
        ("us-gov.nvidia.nemotron-nano-9b-v2", "us-gov-west-1",
         {"aws:us-gov-east-1", "aws:us-gov-west-1"}),
        (f"arn:aws:bedrock:eu-west-2::foundation-model/{SONNET}", "eu-west-2", {"aws:eu-west-2"}),
        (f"arn:aws:bedrock:::foundation-model/{SONNET}", "eu-west-2", {"elsewhere:aws"}),
        (f"arn:aws:bedrock:eu-west-2:123456789012:inference-profile/eu.{SONNET}", "eu-west-2",
         SIX | {"aws:eu-west-2"}),
        ("arn:aws:bedrock:eu-west-1:123456789012:provisioned-model/abc", "eu-west-1",
         {"aws:eu-west-1"}),
        ("amazon.nova-lite-v1:0", "eusc-de-east-1", {"aws:eusc-de-east-1"}),
    ],
)  # fmt: skip
def test_where_a_call_may_run(ask: Ask, model: str, source: str, expected: set[str]) -> None:
    found = ask(model, source)
    assert places(found) == expected
    assert all(fact.source for fact in found.facts)


@pytest.mark.parametrize(
    ("model", "source", "missing"),
    [
        (f"amer.{SONNET}", "us-east-1", "neither a known prefix"),
        ("vendorless", "us-east-1", "neither a known prefix"),
        ("eu.anthropic.claude-new-9", "eu-west-1", "it is not in the catalog"),
        (f"eu.{SONNET}", "us-east-1", "can't be combined"),
        (f"us.{SONNET}", "eu-central-1", "can't be combined"),
        (f"eu.{SONNET}", "eusc-de-east-1", "can't be combined"),
        (f"global.{SONNET}", "us-gov-west-1", "from `aws-us-gov`"),
        (SONNET, "eu-north-9", "region `aws:eu-north-9` in the catalog"),
        (SONNET, "azure:swedencentral", "is not a region of AWS"),
        (SONNET, "", "`source`"),
        (f"arn:aws:bedrock:us-east-1::foundation-model/{SONNET}", "eu-west-1", "make them equal"),
        (f"arn:aws-us-gov:bedrock:eu-west-1::foundation-model/{SONNET}", "eu-west-1",
         "ARN of partition `aws-us-gov`"),
        ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x", "eu-west-1",
         "as GetInferenceProfile lists them"),
        ("arn:aws:bedrock:eu-west-1:1:prompt-router/x", "eu-west-1", "as GetPromptRouter"),
        ("arn:aws:bedrock:eu-west-1:1:imported-model/x", "eu-west-1", "`imported-model` ARNs"),
        ("arn:aws:sagemaker:eu-west-1:1:endpoint/x", "eu-west-1", "not an ARN of Bedrock"),
        ("arn:aws", "eu-west-1", "not an ARN of Bedrock"),
        ("arn:aws:bedrock::1:provisioned-model/abc", "eu-west-1", "the region of provisioned"),
    ],
)  # fmt: skip
def test_what_was_not_seen_is_unknown_and_named(
    ask: Ask, model: str, source: str, missing: str
) -> None:
    found = ask(model, source)
    assert not found.process.is_known
    assert any(missing in m for m in found.missing)


def test_an_application_profile_is_what_it_resolves_to(ask: Ask) -> None:
    arn = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x"
    model = "arn:aws:bedrock:{}::foundation-model/anthropic.y"
    seven = [f"eu-{x}" for x in ("central-1", "central-2", "north-1", "west-1", "west-2", "west-3")]
    members = " ".join(model.format(code) for code in [*seven, "il-central-1"])
    assert places(ask(arn, "eu-west-1", resolves_to=members)) == {
        f"aws:{c}" for c in [*seven, "il-central-1"]
    }
    assert places(ask(arn, "eu-west-1", resolves_to=model.format(""))) == {"elsewhere:aws"}
    new = ask(arn, "eu-west-1", resolves_to=model.format("eu-north-9"))
    assert not new.process.is_known
    junk = ask(arn, "eu-west-1", resolves_to=f"{model.format('eu-west-1')},{arn}")
    assert not junk.process.is_known
    assert "aws:eu-west-1" in junk.process.ids


def test_resolved_members_only_add_to_a_listed_profile(ask: Ask) -> None:
    member = "arn:aws:bedrock:eu-west-1::foundation-model/anthropic.y"
    assert places(ask(f"eu.{SONNET}", "eu-central-1", resolves_to=member)) == SIX
    outside = member.replace("eu-west-1", "us-east-1")
    found = ask(f"eu.{SONNET}", "eu-central-1", resolves_to=outside)
    assert places(found) == SIX | {"aws:us-east-1"}


def test_a_guardrail_adds_where_it_is_evaluated(ask: Ask) -> None:
    source = "me-central-1"
    found = ask(SONNET, source, guardrail="g:1", guardrail_profile="apac.guardrail.v1:0")
    assert len(places(found)) == 10
    assert "aws:ap-northeast-1" in places(found)
    arn = "arn:aws:bedrock:eu-west-2:1:guardrail-profile/uk.guardrail.v1:0"
    assert places(ask(SONNET, "eu-west-2", guardrail_profile=arn)) == {"aws:eu-west-2"}
    in_region = ask("us.openai.gpt-5.4", "us-west-1", guardrail="g", guardrail_profile="none")
    assert "aws:us-west-1" in places(in_region)
    assert not ask(SONNET, "eu-west-2", guardrail="g:1").process.is_known
    assert not ask(SONNET, "eu-west-2", guardrail_profile="eu.guardrail.v1:0").process.is_known
    assert not ask(SONNET, "eu-west-2", guardrail_profile="xx.guardrail.v9").process.is_known


def test_mantle_stays_in_its_region_and_knows_no_profiles(ask: Ask) -> None:
    assert places(ask("openai.gpt-oss-120b", "eu-west-1", "bedrock-mantle")) == {"aws:eu-west-1"}
    assert not ask(f"eu.{SONNET}", "eu-west-1", "bedrock-mantle").process.is_known


@pytest.mark.parametrize(
    "named",
    [
        "arn:aws:bedrock:us-east-1:1:guardrail/g:1",
        "arn:aws-us-gov:bedrock:eu-west-1:1:guardrail/g:1",
    ],
)
def test_a_guardrail_of_another_region_is_evaluated_nobody_knows_where(
    ask: Ask, named: str
) -> None:
    away = ask(SONNET, "eu-west-1", guardrail=named, guardrail_profile="none")
    assert any("is evaluated" in one for one in away.missing)
    here = ask(
        SONNET,
        "eu-west-1",
        guardrail="arn:aws:bedrock:eu-west-1:1:guardrail/g:1",
        guardrail_profile="none",
    )
    assert here.process.ids == ("aws:eu-west-1",)


def test_operators_follow_partition_and_country(ask: Ask) -> None:
    assert ask(SONNET, "eu-west-2").operate.codes == ("LU", "US")
    assert ask(SONNET, "us-east-1").operate.codes == ("US",)
    assert ask(SONNET, "eusc-de-east-1").operate.codes == ("DE", "US")
    assert not ask(SONNET, "ap-east-1").operate.is_known
    assert not ask(f"global.{SONNET}", "us-east-1").operate.is_known


def test_old_facts_are_unknown(catalog: Catalog) -> None:
    endpoint = Endpoint(
        "e", "bedrock", "aws", f"eu.{SONNET}", "eu-central-1", settings={"retention_mode": "none"}
    )
    until = epoch(catalog.date) + 90 * DAY
    fresh = footprint(endpoint, PLAIN_CALL, catalog, until - 1)
    assert fresh.process.is_known
    assert fresh.good_until == until
    aged = footprint(endpoint, PLAIN_CALL, catalog, until)
    assert not aged.process.is_known
    assert not aged.retain.is_known
    assert not aged.operate.is_known
    assert any("a check of this fact within 90 days" in m for m in aged.missing)


def test_a_changed_member_list_changes_the_footprint(now: float) -> None:
    data = dict(package_data())
    changed = data["bedrock.yaml"].replace(
        b"to: ca-central-1 ca-west-1", b"to: ca-central-1 ca-west-1 us-east-1"
    )
    assert changed != data["bedrock.yaml"]
    other = Catalog.load(data={**data, "bedrock.yaml": changed})
    assert other.digest != Catalog.load().digest
    endpoint = Endpoint("e", "bedrock", "aws", "ca.amazon.nova-lite-v1:0", "ca-central-1")
    found = footprint(endpoint, PLAIN_CALL, other, now)
    assert not boundary("CA", other.atlas).contains(found.process)


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("eu.anthropic.x", Form.GEOGRAPHIC),
        ("global.amazon.y", Form.GLOBAL),
        ("apac.meta.z", Form.GEOGRAPHIC),
        ("us-gov.vendor.k", Form.GEOGRAPHIC),
        ("jp.a.b", Form.GEOGRAPHIC),
        ("au.a.b", Form.GEOGRAPHIC),
        ("anthropic.x", Form.BARE),
        ("eu.", Form.UNKNOWN),
        ("", Form.UNKNOWN),
        ("EU.anthropic.x", Form.UNKNOWN),
        ("amer.anthropic.x", Form.UNKNOWN),
    ],
)
def test_identifiers(catalog: Catalog, model: str, form: Form) -> None:
    assert read_identifier(model, catalog.bedrock).form is form


def test_models_that_need_a_profile_and_the_profiles_there_are(catalog: Catalog) -> None:
    facts = catalog.bedrock
    nova = "amazon.nova-pro-v1:0"
    assert needs_profile(nova, "eu-central-1", facts)
    assert not needs_profile(nova, "eu-west-2", facts)
    assert profiles_of(nova, "eu-central-1", facts) == (f"eu.{nova}",)
    assert profiles_of(SONNET, "eu-west-2", facts) == (f"eu.{SONNET}", f"global.{SONNET}")
    assert not needs_profile("anthropic.never-seen", "eu-west-1", facts)
    assert not needs_profile(f"eu.{nova}", "eu-central-1", facts)
