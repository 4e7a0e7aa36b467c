from pathlib import Path

import pytest

from router.assess.litellm import EVERY_GROUP, Bystander, read
from router.config import ConfigError
from tests.router.assess.configs import PROXY, proxy


def test_deployments_keep_their_line_and_resolve_what_is_given(tmp_path: Path) -> None:
    found = proxy(tmp_path, PROXY)
    assert [(d.group, d.line) for d in found.deployments] == [
        ("claude", 2), ("claude", 6), ("nova", 10), ("gpt", 14), ("mistral", 19),
    ]  # fmt: skip
    assert found.deployments[2].unresolved == {"aws_region_name": "BEDROCK_REGION"}
    given = proxy(tmp_path, PROXY, {"BEDROCK_REGION": "eu-west-1"})
    assert given.deployments[2].params["aws_region_name"] == "eu-west-1"
    assert not given.deployments[2].unresolved


def test_the_machines_own_environment_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDROCK_REGION", "eu-west-1")
    assert proxy(tmp_path, PROXY).deployments[2].unresolved


def test_variables_that_the_file_sets_win(tmp_path: Path) -> None:
    text = (
        "environment_variables: {AWS_REGION: eu-west-3, OTHER: os.environ/X}\n"
        "model_list: [{model_name: a, litellm_params: "
        "{model: m, x: os.environ/AWS_REGION, y: os.environ/OTHER}}]\n"
    )
    found = proxy(tmp_path, text, {"AWS_REGION": "us-east-1", "OTHER": "given"})
    assert found.environment == {"AWS_REGION": "eu-west-3", "OTHER": "given"}
    assert found.deployments[0].params == {"model": "m", "x": "eu-west-3", "y": "given"}


def test_fallbacks_of_every_kind_with_their_lines(tmp_path: Path) -> None:
    found = proxy(tmp_path, PROXY).fallbacks
    assert [(f.kind, f.group, f.targets, f.line) for f in found] == [
        ("fallbacks", "mistral", ("gpt", "claude"), 25),
        ("fallbacks", "nova", ("mistral",), 26),
        ("default_fallbacks", EVERY_GROUP, ("mistral",), 27),
        ("context_window_fallbacks", "mistral", ("long",), 29),
    ]


def test_fallbacks_of_a_deployment_may_be_mappings(tmp_path: Path) -> None:
    text = "model_list: [{model_name: m, litellm_params: {model: x, fallbacks: [{model: gpt-4o}]}}]"
    (found,) = proxy(tmp_path, text).fallbacks
    assert (found.kind, found.targets) == ("litellm_params.fallbacks", ("gpt-4o",))


def test_guardrails_and_callbacks_see_prompts_too(tmp_path: Path) -> None:
    text = (
        "guardrails:\n  - guardrail_name: g\n    litellm_params: {guardrail: lakera_v2}\n"
        "litellm_settings:\n  callbacks: langfuse\n  failure_callback: [s3]\n"
    )
    assert proxy(tmp_path, text).bystanders == (
        Bystander("guardrail", "lakera_v2", 2),
        Bystander("callback", "s3", 6),
        Bystander("callback", "langfuse", 5),
    )


def test_named_credentials_and_anchors_give_parameters(tmp_path: Path) -> None:
    text = (
        "x: &aws {aws_region_name: eu-west-3}\n"
        "credential_list:\n"
        "  - credential_name: azure\n    credential_values: {api_base: https://a.azure.com}\n"
        "model_list:\n"
        "  - {model_name: a, litellm_params: {model: azure/x, litellm_credential_name: azure}}\n"
        "  - {model_name: b, litellm_params: {<<: *aws, model: bedrock/amazon.nova-lite-v1:0}}\n"
    )
    first, second = proxy(tmp_path, text).deployments
    assert first.params["api_base"] == "https://a.azure.com"
    assert second.params["aws_region_name"] == "eu-west-3"


def test_included_files_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(
        "include: [config.yaml]\nmodel_list: [{model_name: b, litellm_params: {model: gpt-4o}}]\n"
    )
    text = "include: [more.yaml]\nmodel_list: [{model_name: a, litellm_params: {model: gpt-4o}}]\n"
    assert [d.group for d in proxy(tmp_path, text).deployments] == ["a", "b"]


def test_deployments_in_a_database_are_said_to_be_missing(tmp_path: Path) -> None:
    assert proxy(tmp_path, "general_settings: {store_model_in_db: true}").not_read
    assert not proxy(tmp_path, "general_settings: {store_model_in_db: false}").not_read


def test_odd_shapes_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    text = (
        "model_list: [x, {}, {litellm_params: {model: gpt-4o}}, {model_name: n}]\nguardrails: 1\n"
    )
    found = proxy(tmp_path, text)
    assert [d.group for d in found.deployments] == ["?", "?", "gpt-4o", "n"]


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't read"):
        read(tmp_path / "none.yaml", {})
