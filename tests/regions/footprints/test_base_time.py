"""Law 13 on footprints: time only narrows, whatever the endpoint."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regions.catalog import DAY, Catalog, epoch
from regions.footprints.base import VENDORS, footprint
from regions.model import Assurance, Axis, Call, Endpoint

MODELS = (
    "eu.anthropic.claude-sonnet-4-6", "global.anthropic.claude-sonnet-4-6", "gemini-3-pro",
    "anthropic.claude-sonnet-4-6", "amer.x.y", "arn:aws:bedrock:::foundation-model/a.b", "claude-x",
)  # fmt: skip
SOURCES = (
    "aws:eu-central-1", "aws:us-gov-west-1", "azure:swedencentral", "azure:eastus", "self:fra1",
    "gcp:europe-west4", "aws:nowhere", None,
)  # fmt: skip
HOSTS = (
    "https://eu.api.openai.com", "https://api.eu.mistral.ai", "https://eu.openrouter.ai",
    "https://api.anthropic.com", "https://bedrock-runtime.eu-central-1.amazonaws.com",
    "https://unknown.example",
)  # fmt: skip
VALUES = ("eu", "us", "none", "default", "true", "false", "Standard", "DataZoneStandard", "zdr",
          "on", "AWS_US", "DISABLED", "azure", "eu.guardrail.v1:0")  # fmt: skip
NAMES = sorted({name for vendor in VENDORS.values() for name in vendor.settings})
MOVERS = ("url_input", "stored", "remote_mcp", "conversation", "hosted_tool:x")

ENDPOINTS = st.builds(
    Endpoint,
    name=st.just("e"),
    kind=st.sampled_from(sorted(VENDORS)),
    provider=st.sampled_from(["aws", "azure", "gcp", "self", "openai"]),
    model=st.sampled_from(MODELS),
    source=st.sampled_from(SOURCES),
    urls=st.lists(st.sampled_from(HOSTS), max_size=2).map(tuple),
    settings=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=6),
    operate=st.sampled_from([None, ("DE",), ("US", "FR")]),
    retain=st.sampled_from([None, "nothing", "aws:eu-central-1", "DE", "junk"]),
    assurances=st.sampled_from([(), (Assurance("project_residency:eu", "x", "dpo", 2e9),)]),
)
CALLS = st.builds(
    Call,
    surface=st.just("responses"),
    movers=st.frozensets(st.sampled_from(MOVERS), max_size=2),
)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@given(endpoint=ENDPOINTS, call=CALLS, first=st.integers(0, 8000), later=st.integers(0, 8000))
@settings(max_examples=300)
def test_time_only_narrows(
    catalog: Catalog, endpoint: Endpoint, call: Call, first: int, later: int
) -> None:
    start = epoch(catalog.date)
    early, late = (start + d * DAY / 40 for d in sorted((first, later)))
    before = footprint(endpoint, call, catalog, early)
    after = footprint(endpoint, call, catalog, late)
    assert before.process.mask & ~after.process.mask == 0
    assert before.retain.mask & ~after.retain.mask == 0
    assert before.operate.mask & ~after.operate.mask == 0
    assert after.retain.is_nothing <= before.retain.is_nothing
    if before.good_until is not None:
        assert before.good_until > early
    if before.good_until is None or late < before.good_until:
        assert before == after


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@given(endpoint=ENDPOINTS, call=CALLS)
@settings(max_examples=200)
def test_every_fact_is_sourced_and_every_unknown_is_named(
    catalog: Catalog, now: float, endpoint: Endpoint, call: Call
) -> None:
    found = footprint(endpoint, call, catalog, now)
    assert all(fact.source and fact.statement for fact in found.facts)
    known = {
        Axis.PROCESS: found.process.is_known,
        Axis.RETAIN: found.retain.is_known,
        Axis.OPERATE: found.operate.is_known,
    }
    for axis, is_known in known.items():
        assert bool(found.missing_on(axis)) is not is_known
    assert bool(found.missing) is not all(known.values())


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@given(endpoint=ENDPOINTS)
@settings(max_examples=100)
def test_a_time_that_is_not_known_reads_as_too_late(catalog: Catalog, endpoint: Endpoint) -> None:
    found = footprint(endpoint, Call("messages"), catalog, float("inf"))
    vendor_says = [f for f in found.facts if f.axis is Axis.PROCESS and f.checked_on]
    assert not (vendor_says and found.process.is_known)
    assert found.good_until is None
