"""`domicile policy prove` and `diff`: their words and exit codes."""

from pathlib import Path

import pytest

from tests.cases.built import built
from tests.router.cli.conftest import Domicile
from tests.router.folders import Box, two_continents
from tests.router.scripted import answer

AT = ("--at", "2026-11-29")
HOLDS = "assert: [{never: {tenant: clinic, processed_outside: EU}}]\n"
BROKEN = "assert: [{never: {data_class: internal, processed_outside: EU}}]\n"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return two_continents(tmp_path / "old")


def more(box: Box, text: str) -> None:
    path = box.root / "baseline" / "main.yaml"
    path.write_text(path.read_text() + text)


def test_what_holds_and_what_is_broken(domicile: Domicile, box: Box) -> None:
    more(box, HOLDS)
    ran = domicile("policy", "prove", "--config", box.config, *AT)
    assert ran.code == 0, ran.out + ran.err
    assert "holds: assert never" in ran.out
    assert "1 of 1 statements hold" in ran.out


def test_a_broken_statement_fails_with_its_place_and_example(domicile: Domicile, box: Box) -> None:
    more(box, BROKEN)
    ran = domicile("policy", "prove", "--config", box.config, *AT)
    assert ran.code == 1
    assert "baseline/main.yaml:" in ran.out
    assert "by the router in self:iad1 is eligible" in ran.out
    told = domicile("policy", "prove", "--config", box.config, "--json", *AT).json
    assert told["ok"] is False
    statements = told["statements"]
    assert isinstance(statements, list)
    assert [one["outcome"] for one in statements] == ["broken"]
    assert statements[0]["example"]["tenant"] in {"shop", "american"}
    assert statements[0]["example"]["router"] == "self:iad1"


def test_later_vacuous_and_nothing_to_prove(domicile: Domicile, box: Box) -> None:
    ran = domicile("policy", "prove", "--config", box.config, *AT)
    assert (ran.code, ran.out) == (0, "0 of 0 statements hold\n")
    more(box, "boundaries: {soon: {plus: [EU, {country: US, until: 2027-01-01}]}}\n"
              "assert: [{never: {tenant: american, processed_outside: soon}}, "
              "{never: {tenant: nobody, processed_outside: EU}}]\n")  # fmt: skip
    ran = domicile("policy", "prove", "--config", box.config, *AT)
    assert ran.code == 1
    assert "breaks later: " in ran.out
    assert "from 2027-01-01 00:00 UTC: tenant `american`" in ran.out
    assert "no request reaches what it speaks of" in ran.out


def widened(box: Box, root: Path) -> Box:
    wide = two_continents(root)
    path = wide.root / "rules" / "example.yaml"
    path.write_text(path.read_text().replace("process_within: DE,", "process_within: DE + US,"))
    assert path.read_text() != (box.root / "rules" / "example.yaml").read_text()
    return wide


def test_a_difference_is_shown_and_widening_fails(
    domicile: Domicile, box: Box, tmp_path: Path
) -> None:
    wide = widened(box, tmp_path / "new")
    ran = domicile("policy", "diff", box.config, wide.root, *AT)
    assert ran.code == 0, ran.err
    assert "WIDER" in ran.out
    assert "`data_class: health` said by" in ran.out
    assert domicile("policy", "diff", box.root, wide.config, "--fail-on-widening", *AT).code == 3
    back = domicile("policy", "diff", wide.config, box.config, "--fail-on-widening", *AT)
    assert back.code == 0
    assert "narrower" in back.out
    told = domicile("policy", "diff", box.config, wide.config, "--json", *AT).json
    assert told["widens"] is True
    same = domicile("policy", "diff", box.config, box.config, "--json", *AT).json
    assert same == {"widens": False, "changes": []}


def test_folders_of_policy_files_are_compared(domicile: Domicile, box: Box, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "main.yaml").write_bytes((box.root / "baseline" / "main.yaml").read_bytes())
    (bare / "main.cases.yaml").write_text("not: a policy\n")
    (box.root / "domicile.yaml").rename(box.root / "elsewhere.txt")
    ran = domicile("policy", "diff", box.root, bare, "--json", *AT)
    assert ran.json["widens"] is True  # the rules are gone
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "main.yaml").write_text("tenants: 7\n")
    assert domicile("policy", "diff", box.root, broken, *AT).code == 1


async def test_recorded_requests_are_decided_again(domicile: Domicile, tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        for _ in range(3):
            await world.ask("eu", ((b"x-domicile-attr-data_class", b"health"),))
    new = tmp_path / "new"
    new.mkdir()
    (new / "main.yaml").write_bytes((tmp_path / "baseline.yaml").read_bytes())
    log = ("--log", tmp_path / "log")
    ran = domicile("policy", "diff", tmp_path / "domicile.yaml", new, *log, *AT)
    assert ran.code == 0, ran.err
    assert "recorded requests: 3" in ran.out
    told = domicile("policy", "diff", tmp_path / "domicile.yaml", new, *log, "--json", *AT).json
    recorded = told["recorded"]
    assert isinstance(recorded, dict)
    assert recorded["total"] == 3
    assert {one["tenant"] for one in recorded["shifts"]} <= {"eu"}
