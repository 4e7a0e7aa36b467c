"""`domicile policy export`: its forms and exit codes."""

import json
from pathlib import Path

import pytest

from tests.router.cli.conftest import Domicile
from tests.router.folders import Box, two_continents

AT = ("--at", "2026-11-29")


@pytest.fixture
def box(tmp_path: Path) -> Box:
    box = two_continents(tmp_path)
    path = box.root / "baseline" / "main.yaml"
    text = path.read_text().replace(
        "attributes:",
        "  claude: {kind: bedrock, source: eu-central-1, model: eu.anthropic.claude-sonnet-4-6}\n"
        "attributes:",
        1,
    )
    path.write_text(text)
    return box


@pytest.mark.parametrize(
    ("form", "inside", "outside"),
    [
        ("aws", "inference-profile/eu.anthropic.claude-sonnet-4-6", "unspecified"),
        ("terraform", "aws_iam_role_policy", "unspecified"),
        ("hosts", "127.0.0.1:1", "127.0.0.1:4"),
        ("envoy", "bedrock-runtime.eu-central-1.amazonaws.com", "us-east-1"),
    ],
)
def test_each_form_is_json_about_what_is_inside(
    domicile: Domicile, box: Box, form: str, inside: str, outside: str
) -> None:
    ran = domicile("policy", "export", form, "--boundary", "EU", "--config", box.config, *AT)
    assert ran.code == 0, ran.err
    json.loads(ran.out)
    assert inside in ran.out
    assert outside not in ran.out


def test_kubernetes_takes_addresses_and_labels(domicile: Domicile, box: Box) -> None:
    options = ("--cidr", "10.0.0.0/8", "--selector", "tier=router", "--config", box.config)
    ran = domicile("policy", "export", "kubernetes", "--boundary", "EU", *options)
    assert ran.code == 0, ran.err
    assert '"tier": "router"' in ran.out
    assert "10.0.0.0/8" in ran.out


@pytest.mark.parametrize(
    "options",
    [
        ("aws",),
        ("clay", "--boundary", "EU"),
        ("aws", "--boundary", "no-such-place"),
        ("aws", "--boundary", "EU", "--account", "12"),
        ("kubernetes", "--boundary", "EU", "--selector", "router"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    domicile: Domicile, box: Box, options: tuple[str, ...]
) -> None:
    assert domicile("policy", "export", *options, "--config", box.config).code == 2
