from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from router.simulator.bedrock import BedrockStub
from tests.router.simulator.conversing import ARN, EU, SIX, SONNET, Aws, do


async def test_the_control_plane_lists_what_a_source_region_sees(
    aws: Aws, stub: BedrockStub
) -> None:
    frankfurt, london, dublin = (
        aws(stub, "bedrock", region) for region in ("eu-central-1", "eu-west-2", "eu-west-1")
    )
    listed = await do(frankfurt.list_inference_profiles)
    names = [row["inferenceProfileId"] for row in listed["inferenceProfileSummaries"]]
    assert names == [EU, f"global.{SONNET}"]
    arns = [m["modelArn"] for m in listed["inferenceProfileSummaries"][1]["models"]]
    assert f"arn:aws:bedrock:::foundation-model/{SONNET}" in arns
    got = await do(london.get_inference_profile, inferenceProfileIdentifier=EU)
    assert [m["modelArn"].split(":")[3] for m in got["models"]] == [*SIX, "eu-west-2"]
    own = await do(dublin.get_inference_profile, inferenceProfileIdentifier=ARN)
    assert (own["type"], own["inferenceProfileArn"]) == ("APPLICATION", ARN)
    only = await do(dublin.list_inference_profiles, typeEquals="APPLICATION")
    assert len(only["inferenceProfileSummaries"]) == 1
    page = await do(dublin.list_inference_profiles, maxResults=1)
    assert len(page["inferenceProfileSummaries"]) == 1
    rest = await do(dublin.list_inference_profiles, nextToken=page["nextToken"])
    assert "nextToken" not in rest
    with pytest.raises(ClientError) as caught:
        await do(london.get_inference_profile, inferenceProfileIdentifier="nope")
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"
    guardrails = await do(frankfurt.list_guardrails)
    (guardrail,) = guardrails["guardrails"]
    assert guardrail["crossRegionDetails"]["guardrailProfileId"] == "eu.guardrail.v1:0"
    detail = await do(
        frankfurt.get_guardrail, guardrailIdentifier="gr1234567890", guardrailVersion="2"
    )
    assert detail["guardrailArn"] == guardrail["arn"]
    models = await do(frankfurt.list_foundation_models)
    assert models["modelSummaries"][0]["modelId"] == "amazon.nova-lite-v1:0"


async def test_retention_modes_are_kept_by_region(aws: Aws, stub: BedrockStub) -> None:
    frankfurt, london = (aws(stub, "bedrock", region) for region in ("eu-central-1", "eu-west-2"))
    assert (await do(frankfurt.get_account_data_retention))["mode"] == "default"
    assert (await do(frankfurt.put_account_data_retention, mode="none"))["mode"] == "none"
    assert (await do(frankfurt.get_account_data_retention))["mode"] == "none"
    assert (await do(london.get_account_data_retention))["mode"] == "default"
