"""`domicile assess`: its words and exit codes."""

import json
from pathlib import Path

import pytest

from tests.router.assess.configs import PROXY, call, stream
from tests.router.cli.conftest import Domicile

INSIDE = (
    "model_list:\n  - model_name: a\n    litellm_params: "
    "{model: bedrock/eu.anthropic.claude-sonnet-4-6, aws_region_name: os.environ/HERE}\n"
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(PROXY)
    return path


@pytest.fixture
def trail(tmp_path: Path) -> Path:
    folder = tmp_path / "trail"
    folder.mkdir()
    records = [call(1), call(2), *stream(3, "us-east-1")]
    (folder / "a.json").write_text(json.dumps({"Records": records}))
    return folder


def test_a_config_is_shown_route_by_route(domicile: Domicile, config: Path) -> None:
    ran = domicile("assess", "--litellm", config, "--within", "EU")
    assert ran.code == 3
    assert "INSIDE" in ran.out
    assert "OUTSIDE" in ran.out
    assert f"{config}:25: fallbacks of `mistral` CROSSES the boundary" in ran.out
    assert "`claude` is balanced over deployments inside and not inside" in ran.out
    assert "callback `langfuse` is sent prompts: not judged without --retain-within" in ran.out


def test_a_config_as_json(domicile: Domicile, config: Path) -> None:
    told = domicile("assess", "--litellm", config, "--within", "EU", "--json").json
    assert told["exit_code"] == 3
    routes = told["routes"]
    assert isinstance(routes, list)
    assert [(r["model_name"], r["line"], r["verdict"]) for r in routes] == [
        ("claude", 2, "inside"), ("claude", 6, "outside"), ("nova", 10, "unknown"),
        ("gpt", 14, "unknown"), ("mistral", 19, "inside"),
    ]  # fmt: skip
    fallbacks = told["fallbacks"]
    assert isinstance(fallbacks, list)
    assert [f["crosses"] for f in fallbacks] == [True, False, False, True]
    assert told["mixed_groups"] == ["claude"]


def test_true_exit_codes_for_a_config(program: Domicile, tmp_path: Path) -> None:
    path = tmp_path / "inside.yaml"
    path.write_text(INSIDE)
    asked = ("assess", "--litellm", path, "--within", "EU")
    assert program(*asked).code == 4
    assert program(*asked, "--env", "HERE=eu-central-1").code == 0
    assert program(*asked, "--env", "HERE=eu-west-2").code == 3
    assert program(*asked[:3], "--within", "eu").code == 2


def test_cloudtrail_is_shown_by_the_region_calls_ran_in(domicile: Domicile, trail: Path) -> None:
    ran = domicile("assess", "--cloudtrail", trail, "--within", "EU")
    assert ran.code == 3
    assert "within EU: 3 calls" in ran.out
    assert "aws:us-east-1" in ran.out
    assert "note: calls through bedrock-mantle" in ran.out
    told = domicile("assess", "--cloudtrail", trail, "--within", "EU + US", "--json")
    assert told.code == 0
    assert told.json["calls"] == 3
    rows = told.json["rows"]
    assert isinstance(rows, list)
    assert {(row["region"], row["calls"]) for row in rows} == {
        ("aws:eu-north-1", 2),
        ("aws:us-east-1", 1),
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give one of"),
        (("--litellm", "a", "--cloudtrail", "b"), "give one of"),
        (("--cloudtrail", "b", "--operated-by", "EU"), "only `--within` applies"),
        (("--litellm", "a", "--env", "NAME"), "has no value"),
        (("--litellm", "a", "--own", "self:x=XX"), "is not an ISO 3166-1"),
    ],
)
def test_usage(domicile: Domicile, arguments: tuple[str, ...], told: str) -> None:
    ran = domicile("assess", *arguments, "--within", "EU")
    assert ran.code == 2
    assert told in ran.err


def test_within_is_required(domicile: Domicile, config: Path) -> None:
    assert domicile("assess", "--litellm", config).code == 2


@pytest.mark.parametrize("option", ["--litellm", "--cloudtrail"])
def test_a_missing_file_fails(domicile: Domicile, tmp_path: Path, option: str) -> None:
    ran = domicile("assess", option, tmp_path / "none", "--within", "EU")
    assert ran.code == 1
    assert ran.err.startswith("error: ")
