"""`domicile decide`: its words and exit codes."""

import json
from pathlib import Path

import pytest

from tests.router.cli.conftest import Domicile, Ran
from tests.router.folders import Box, two_continents


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return two_continents(tmp_path)


@pytest.fixture
def decide(domicile: Domicile, box: Box) -> Domicile:
    def run(*words: str | Path) -> Ran:
        return domicile("decide", "--config", box.config, "--at", "2026-11-29", *words)

    return run


def endpoints(ran: Ran) -> list[str]:
    found = ran.json["eligible"]
    assert isinstance(found, list)
    return [one["endpoint"] for one in found]


def test_json_holds_everything_a_decision_is_made_of(decide: Domicile, box: Box) -> None:
    ran = decide("--tenant", "clinic", "--model", "assistant", "--attr", "data_class=health",
                 "--json")  # fmt: skip
    assert ran.code == 0
    told = ran.json
    assert told["outcome"] == "allowed"
    assert told["router_inside"] is True
    assert told["error"] is None
    assert told["policy"] == box.snapshot().policy.digest
    allowed = told["allowed"]
    assert isinstance(allowed, dict)
    assert allowed["process"]["word"] == "DE"
    assert allowed["retain"]["word"] == "EU"
    assert allowed["operate"] == "any"
    assert endpoints(ran) == ["fra-large"]
    excluded = told["excluded"]
    assert isinstance(excluded, list)
    codes = {one["endpoint"]: one["codes"] for one in excluded}
    assert codes["iad-large"] == ["process_outside"]
    assert codes["fra-small"] == ["tier_below_grade"]
    assert "health-in-germany" in str(told["applied"])
    assert told["dry_run"] == ["trial"]


def test_several_values_and_attributes_may_be_given(decide: Domicile) -> None:
    words = ("--tenant", "shop", "--model", "assistant", "--app", "crm", "--json")
    free = decide(*words, "--attr", "zone=blue", "--attr", "data_class=public")
    assert endpoints(free) == ["fra-large", "par-large", "iad-large"]
    both = decide(*words, "--attr", "zone=blue,red", "--attr", "data_class=public")
    assert endpoints(both) == ["fra-large", "par-large"]


def test_a_refusal_says_its_code_and_exits_with_three(decide: Domicile) -> None:
    ran = decide("--tenant", "american", "--model", "assistant")
    assert ran.code == 3
    assert "REFUSED: 421 misdirected" in ran.out
    assert "this router, in self:fra1, is OUTSIDE" in ran.out
    told = decide("--tenant", "american", "--model", "assistant", "--json").json
    assert told["outcome"] == "refused"
    assert told["home"] == {"region": "self:iad1", "url": "https://us.llm.example.com"}
    assert told["eligible"] == []


def test_tables_for_people(decide: Domicile) -> None:
    ran = decide("--tenant", "clinic", "--model", "assistant")
    assert ran.code == 0
    assert "fra-large" in ran.out
    assert "tier_below_grade: large" in ran.out
    assert "red-in-france" in ran.out, "it applies because nothing is known of its attribute"
    assert "zone" in ran.out
    assert "on trial: rule `trial` would apply" in ran.out
    assert ran.out.endswith("ALLOWED: sent to `fra-large` first\n")


def test_a_body_may_be_given(decide: Domicile, tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    messages = [{"role": "user", "content": "x" * 8000}]
    path.write_text(json.dumps({"model": "assistant", "messages": messages}))
    ran = decide("--tenant", "clinic", "--body", path, "--json")
    assert endpoints(ran) == ["par-large"], "the context of fra-large is too short"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--attr", "data_class=secret"), "attribute_unknown"),
        (("--attr", "staff=yes"), "attribute_not_yours"),
        (("--tier", "huge"), "invalid_header"),
    ],
)
def test_a_request_that_is_wrong_in_itself_fails(
    decide: Domicile, words: tuple[str, ...], code: str
) -> None:
    ran = decide("--tenant", "clinic", "--model", "assistant", *words, "--json")
    assert ran.code == 1
    assert code in ran.err
    assert ran.json["outcome"] == "invalid"


@pytest.mark.parametrize(
    "words",
    [
        ("--tenant", "clinic"),
        ("--model", "assistant"),
        ("--tenant", "clinic", "--model", "assistant", "--attr", "data_class"),
        ("--tenant", "clinic", "--model", "assistant", "--attr", "=health"),
    ],
)
def test_usage(decide: Domicile, words: tuple[str, ...]) -> None:
    assert decide(*words).code == 2


def test_a_key_says_whose_request_it_is(decide: Domicile, box: Box) -> None:
    line = f'{{id: clinic-1, sha256: "{"a" * 64}", tenant: clinic}}'
    (box.root / "keys.yaml").write_text(f"version: 1\nkeys:\n  - {line}\n")
    words = ("--model", "assistant", "--json")
    assert decide("--key", "clinic-1", *words).json == decide("--tenant", "clinic", *words).json
    other = decide("--key", "clinic-1", "--tenant", "shop", *words)
    assert other.code == 1
    assert "key `clinic-1` is of `clinic`, not of `shop`" in other.err
    gone = decide("--key", "clinik-1", *words)
    assert (gone.code, "no key `clinik-1` is in the keys file; did you mean" in gone.err) == (
        2,
        True,
    )


def test_nothing_is_written(decide: Domicile, box: Box) -> None:
    before = sorted(box.root.rglob("*"))
    decide("--tenant", "clinic", "--model", "assistant")
    assert sorted(box.root.rglob("*")) == before


def test_true_exit_codes(program: Domicile, box: Box) -> None:
    words = ("decide", "--config", box.config, "--model", "assistant", "--at", "2026-11-29")
    assert program(*words, "--tenant", "clinic").code == 0
    assert program(*words, "--tenant", "nobody").code == 3


def test_the_class_is_told_where_there_are_classes(decide: Domicile, box: Box) -> None:
    words = ("--tenant", "clinic", "--model", "assistant", "--attr", "data_class=public")
    assert decide(*words, "--json").json["priority"] is None
    text = box.config.read_text()
    assert "router:\n" in text
    box.config.write_text(text.replace("router:\n", "router:\n  priorities: {}\n", 1))
    assert decide(*words, "--json").json["priority"] == "standard"
    assert "class: batch" in decide(*words, "--priority", "batch").out
    above = decide(*words, "--priority", "interactive")
    assert above.code == 1
    assert "priority_not_allowed" in above.err
