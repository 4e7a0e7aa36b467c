"""Everything wrong with a configuration is said at once, and every setting's source."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from policies.gathered import PolicyFile
from policies.loader import Loaded
from policies.prove import Proof, prove
from router.cli.init import BASELINE, RULES
from router.config import ConfigError, load
from router.settings.checking import Proven, check, stores, unread_variables
from router.settings.loading import baseline_signatures
from tests.router.folders import AT, CONFIG, sound, write


def test_a_sound_configuration_has_a_snapshot(tmp_path: Path) -> None:
    box = sound(tmp_path)
    found = check(box.config, {}, AT)
    assert found.problems == ()
    assert found.snapshot is not None
    assert found.snapshot.digest == box.snapshot().digest


def test_faults_in_every_file_are_said_at_once(tmp_path: Path) -> None:
    box = write(
        tmp_path,
        BASELINE.replace("process: EU", "process: eu-only").replace("country: DE", "country: XX"),
        RULES.replace("data_class: health", "data_klass: health"),
    )
    (tmp_path / "keys.yaml").write_text("version: 1\nkeys: [{id: a, sha256: short}]\n")
    (tmp_path / "log.key").write_text("no key")
    found = check(box.config, {"DOMICILE_REGION": "eu"}, AT)
    told = "\n".join(found.problems)
    for part in (
        "baseline/main.yaml:", "eu-only", "rules/example.yaml:", "data_klass", "keys.yaml:",
        "log.key", "DOMICILE_REGION",
    ):  # fmt: skip
        assert part in told
    assert found.snapshot is None


def test_a_keys_budget_is_worth_nothing_at_endpoints_without_a_price(tmp_path: Path) -> None:
    box = write(tmp_path)

    def unpriced(limits: str) -> int:
        line = f"{{id: a, sha256: {'ab' * 32}, tenant: example{limits}}}"
        (tmp_path / "keys.yaml").write_text(f"version: 1\nkeys: [{line}]\n")
        found = check(box.config, {}, AT)
        assert found.problems == ()
        return sum(one.code == "unpriced" for one in found.findings)

    assert unpriced("") == unpriced(", limits: {tokens: 5/s}") == 0
    assert unpriced(", limits: {dollars: 5/d}") > 0


@pytest.mark.parametrize("word", ["eu", "eu-only", "EuropeanUnion"])
def test_a_word_for_the_eu_that_is_none_is_an_error_with_the_right_one(
    tmp_path: Path, word: str
) -> None:
    """residency-03, residency-15: no rule may silently match nothing."""
    box = write(tmp_path, BASELINE, RULES.replace("process_within: DE", f"process_within: {word}"))
    (problem,) = check(box.config, {}, AT).problems
    assert "rules/example.yaml:" in problem
    assert "did you mean `EU`" in problem


def test_a_setting_read_nowhere_is_an_error_with_its_line(tmp_path: Path) -> None:
    """residency-16."""
    box = write(tmp_path, config=CONFIG.replace("  id: local-1", "  id: local-1\n  regoin: EU"))
    (problem,) = check(box.config, {}, AT).problems
    assert "domicile.yaml:5" in problem
    assert "regoin" in problem


def test_every_setting_in_force_has_its_source(tmp_path: Path) -> None:
    box = write(tmp_path)
    found = {one.name: one for one in check(box.config, {}, AT).settings}
    assert found["router.region"].value == "self:local"
    assert found["router.region"].source.startswith(f"{box.config}:5:")
    assert found["router.limits.deadline"].source == "default"
    assert found["policies.rules"].value == "rules/*.yaml"


def test_variables_that_look_as_if_they_worked_are_named(tmp_path: Path) -> None:
    box = write(tmp_path)
    environment = {
        "DOMICILE_CONFIG": "x", "DOMICILE_DEV_DATA": "x", "DOMICILE_TOKEN": "x", "HOME": "x",
        "DOMICILE_REGION": "x",
    }  # fmt: skip
    box.config.write_text(CONFIG + "# see env:DOMICILE_TOKEN\n")
    (problem,) = unread_variables(environment, box.config)
    assert "`DOMICILE_REGION` is read nowhere" in problem


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("region: self:local", "region: self:other", "router.region"),
        ("file: keys.yaml", "file: none.yaml", "none.yaml"),
        ("rules/*.yaml", "missing/*.yaml", "matches no file"),
        ("file:log.key", "env:LOG_KEY", "only by reference: `file:PATH`"),
    ],
)
def test_what_only_shows_in_other_files_is_found_too(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    box = write(tmp_path, config=CONFIG.replace(old, new))
    assert any(told in problem for problem in check(box.config, {}, AT).problems)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("domicile.yaml", ""),
        ("keys.yaml", "the keys file"),
        ("baseline/main.yaml", "the policy file"),
        ("rules/example.yaml", "the policy file"),
        ("log.key", "the signing key"),
    ],
)
def test_a_folder_where_a_file_belongs_is_told_with_what_to_do(
    tmp_path: Path, name: str, what: str
) -> None:
    box = write(tmp_path, config=CONFIG)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()
    problems = check(box.config, {}, AT).problems
    (told,) = {one for one in problems if "can't read" in one}
    assert what in told
    assert f"{name}`: it is a folder, not a file; name a file in it" in told
    assert "Errno" not in "".join(problems)


def test_a_folder_among_the_signatures_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "main.sig").mkdir()
    with pytest.raises(ConfigError, match=r"the signature `.*main\.sig`: it is a folder"):
        baseline_signatures([PolicyFile("main.yaml", b"")], tmp_path)


def test_a_file_that_is_no_yaml_says_where(tmp_path: Path) -> None:
    (tmp_path / "domicile.yaml").write_text("version: [1\n")
    (problem,) = check(tmp_path / "domicile.yaml", {}, AT).problems
    assert "domicile.yaml:" in problem
    (problem,) = check(tmp_path / "none.yaml", {}, AT).problems
    assert "can't read" in problem


def test_lint_joins_and_its_errors_are_problems(tmp_path: Path) -> None:
    box = write(tmp_path)
    found = check(box.config, {}, AT)
    assert "no_fallback" in {one.code for one in found.findings}
    assert found.problems == ()
    wide = BASELINE.replace("process: EU, retain: EU", "process: FR")
    box = write(tmp_path, wide)
    told = check(box.config, {}, AT)
    assert told.problems, "no model of the tenant has a place inside its grant"
    assert told.snapshot is not None


def test_an_error_of_lint_says_where_once_and_needs_no_word_for_it(tmp_path: Path) -> None:
    unknown = BASELINE.replace("region: self:local", "provider: other")
    found = check(write(tmp_path, unknown).config, {}, AT)
    line = 1 + unknown.splitlines().index(
        next(one for one in unknown.splitlines() if one.startswith("  local-model:"))
    )
    told = [one for one in found.problems if "footprint_unknown" in one]
    assert len(told) == 1
    assert told[0].startswith(f"baseline/main.yaml:{line}:3: endpoint `local-model`: ")
    assert "error:" not in "".join(found.problems)
    marks = {one.code: str(one.mark) for one in found.findings}
    assert marks["endpoint_unreachable"] == f"baseline/main.yaml:{line}:3"


def test_everything_the_router_writes_to_has_a_place(tmp_path: Path) -> None:
    more = (
        "  anchor: {s3: acme-anchor, region: aws:eu-west-1}\n"
        "state: {redis: env:REDIS_URL, region: aws:eu-central-1}\n"
    )
    text = CONFIG.replace(
        "log: {dir: log, signing_key: file:log.key}",
        "log:\n  dir: log\n  signing_key: file:log.key",
    )
    box = write(tmp_path, config=text + more)
    assert stores(load(box.config)) == {
        "log": "self:local",
        "log.anchor": "aws:eu-west-1",
        "state": "aws:eu-central-1",
    }


def test_a_sink_where_requests_may_not_be_kept_is_refused(tmp_path: Path) -> None:
    def config(region: str) -> str:
        sink = f'exports: [{{http: "https://c.example", region: {region}, format: otel}}]'
        return CONFIG.replace("signing_key: file:log.key}", f"signing_key: file:log.key, {sink}}}")

    inside = check(write(tmp_path / "a", config=config("self:local")).config, {}, AT)
    assert inside.problems == ()
    (problem,) = check(
        write(tmp_path / "b", config=config("aws:us-east-1")).config, {}, AT
    ).problems
    assert "log.exports c.example" in problem
    assert "aws:us-east-1" in problem


def test_proofs_join_and_what_is_broken_is_a_problem(tmp_path: Path) -> None:
    holds = "assert: [{never: {processed_outside: EU}}]\n"
    found = check(write(tmp_path, BASELINE + holds).config, {}, AT)
    assert found.problems == ()
    wide = BASELINE.replace("process: EU, retain: EU", "process: worldwide, retain: worldwide")
    (problem,) = check(write(tmp_path, wide + holds.replace("EU", "CH")).config, {}, AT).problems
    assert "baseline/main.yaml:22:10: assert never" in problem
    assert "(assert_broken)" in problem


def test_what_was_proven_is_not_proven_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(loaded: Loaded, now: float, routers: Sequence[str]) -> Proof:
        asked.append(loaded.policy.digest)
        return prove(loaded, now, routers)

    monkeypatch.setattr("policies.prove.prove", counted)
    box = write(tmp_path, BASELINE + "assert: [{never: {processed_outside: EU}}]\n")
    proven = Proven()
    for _ in range(3):
        assert check(box.config, {}, AT, proven).problems == ()
    assert len(asked) == 1
    rules = tmp_path / "rules" / "example.yaml"
    rules.write_text(rules.read_text().replace("process_within: DE", "process_within: EU"))
    assert check(box.config, {}, AT, proven).problems == ()
    assert len(set(asked)) == 2


CASE = """\
now: 2026-12-01
router: self:local
cases:
  - {name: silence, request: {tenant: example, model: assistant}, expect: {endpoints: [%s]}}
"""


def test_cases_join_and_what_fails_is_a_problem(tmp_path: Path) -> None:
    box = write(
        tmp_path, config=CONFIG.replace("rules/*.yaml]", "rules/*.yaml], cases: [c/*.yaml]")
    )
    (tmp_path / "c").mkdir()
    case = tmp_path / "c" / "a.yaml"
    case.write_text(CASE % "local-model")
    found = check(box.config, {}, AT)
    assert found.problems == ()
    assert "cases_ran" in {one.code for one in found.findings}
    case.write_text(CASE % "other")
    (problem,) = check(box.config, {}, AT).problems
    assert problem.startswith("c/a.yaml:4:5: case `silence`: endpoints: expected")
    case.write_text(CASE.replace("expect", "expects"))
    assert any("c/a.yaml:4" in one for one in check(box.config, {}, AT).problems)
    case.unlink()
    (problem,) = check(box.config, {}, AT).problems
    assert "c/*.yaml" in problem
