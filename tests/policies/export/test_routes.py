import pytest

from policies.export.routes import NoRoute, regions_of, route_of
from regions.boundaries import boundary
from regions.catalog import Catalog
from regions.model import Endpoint


def endpoint(model: str, source: str | None = "aws:eu-central-1", **settings: str) -> Endpoint:
    return Endpoint("e", "bedrock", "aws", model, source=source, settings=settings)


def test_a_profile_is_checked_in_its_source_and_its_model_in_each_destination() -> None:
    route = route_of(endpoint("eu.anthropic.claude-sonnet-4-6"), Catalog.load(), "1")
    assert route.profile == (
        "arn:aws:bedrock:eu-central-1:1:inference-profile/eu.anthropic.claude-sonnet-4-6"
    )
    assert route.regions == {"eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2",
                             "eu-west-1", "eu-west-3"}  # fmt: skip
    assert "arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-sonnet-4-6" in route.models


def test_a_global_profile_has_a_model_without_region() -> None:
    route = route_of(
        endpoint("global.anthropic.claude-sonnet-4-6", "aws:eu-west-1"), Catalog.load()
    )
    assert route.regions == {"eu-west-1", ""}
    assert route.profile is not None
    assert ":eu-west-1:*:" in route.profile


def test_a_direct_call_has_one_model_and_no_profile() -> None:
    route = route_of(endpoint("anthropic.claude-sonnet-4-6", "aws:eu-west-1"), Catalog.load())
    assert route.profile is None
    assert route.regions == {"eu-west-1"}


def test_an_application_profile_is_what_it_resolves_to() -> None:
    arn = "arn:aws:bedrock:eu-central-1:1:application-inference-profile/abc"
    model = "arn:aws:bedrock:eu-west-1::foundation-model/m"
    route = route_of(endpoint(arn, resolves_to=model), Catalog.load())
    assert (route.profile, route.models) == (arn, (model,))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (Endpoint("e", "vllm", "self", "m"), "not called through Bedrock"),
        (endpoint("m", source=None), "not called through Bedrock"),
        (endpoint("eu.anthropic.unheard-of"), "is not known"),
        (
            endpoint("eu.anthropic.claude-sonnet-4-6", "aws:us-east-1"),
            "us-east-1 is not known",
        ),
        (endpoint("arn:aws:bedrock:eu-central-1:1:prompt-router/x"), "is not known"),
        (endpoint("eu.anthropic.claude-sonnet-4-6", "aws:xx-nowhere-1"), "not in the catalog"),
    ],
)
def test_what_is_not_known_is_not_exported(made: Endpoint, why: str) -> None:
    with pytest.raises(NoRoute, match=why):
        route_of(made, Catalog.load())


def test_regions_of_a_boundary_are_those_of_one_partition() -> None:
    atlas = Catalog.load().atlas
    assert regions_of(boundary("EU", atlas), "aws-eusc") == ("eusc-de-east-1",)
    assert "eu-central-1" in regions_of(boundary("EU", atlas), "aws")
