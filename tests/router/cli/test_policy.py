"""`domicile policy`: its words and exit codes."""

import json
import re
from base64 import b64encode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from policies.gathered import PolicyFile
from policies.signatures import ComplianceKey, NotSigned, require_signed
from router.audit.note import create_signing_key
from tests.router.cli.conftest import Domicile
from tests.router.folders import Box, sound, two_continents

CASES = """\
version: 1
now: 2026-11-29
router: self:fra1
cases:
  - name: health stays in Germany
    request: {tenant: clinic, model: assistant, headers: {data_class: health}}
    expect: {processed_within: DE, applied: [health-in-germany, red-in-france]}
"""


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return two_continents(tmp_path)


def test_lint_finds_what_nobody_uses_and_fails_only_for_errors(
    domicile: Domicile, box: Box
) -> None:
    assert domicile("policy", "lint", "--config", box.config).code == 1
    sound(box.root)
    ran = domicile("policy", "lint", "--config", box.config)
    assert ran.code == 0
    assert "baseline/main.yaml:" in ran.out
    assert domicile("policy", "lint", "--config", box.config, "--strict").code == 1
    told = json.loads(domicile("policy", "lint", "--config", box.config, "--json").out)
    assert {"severity", "code", "message", "place"} == set(told[0])
    assert "rule_on_trial" in {one["code"] for one in told}


def test_cases_pass_or_say_where_they_fail(domicile: Domicile, box: Box) -> None:
    path = box.root / "health.cases.yaml"
    path.write_text(CASES)
    ran = domicile("policy", "test", path, "--config", box.config)
    assert ran.code == 0, ran.out
    assert "1 of 1 cases pass" in ran.out
    assert "not covered: " in ran.out
    path.write_text(CASES.replace("processed_within: DE", "processed_within: FR"))
    ran = domicile("policy", "test", path, "--config", box.config)
    assert ran.code == 1
    assert f"{path}:5:" in ran.out
    (told,) = json.loads(domicile("policy", "test", path, "--config", box.config, "--json").out)
    assert told["results"][0]["ok"] is False


def test_the_cases_that_the_configuration_lists(domicile: Domicile, box: Box) -> None:
    assert domicile("policy", "test", "--config", box.config).code == 2
    listed = "rules/*.yaml], cases: [cases/*.yaml]"
    box.config.write_text(box.config.read_text().replace("rules/*.yaml]", listed))
    (box.root / "cases").mkdir()
    (box.root / "cases" / "one.yaml").write_text(CASES)
    (box.root / "cases" / "two.yaml").write_text(CASES)
    ran = domicile("policy", "test", "--config", box.config)
    assert ran.code == 0, ran.out
    assert "cases/two.yaml: 1 of 1 cases pass" in ran.out
    assert re.search(r"^together: \d of \d branches covered$", ran.out, re.MULTILINE)
    assert domicile("policy", "test", "--config", box.config, "--covered").code == 1


def test_a_case_file_that_cant_be_read_fails(domicile: Domicile, box: Box) -> None:
    ran = domicile("policy", "test", box.root / "none.yaml", "--config", box.config)
    assert ran.code == 1
    assert "can't read" in ran.err


def test_the_schema_is_json(domicile: Domicile) -> None:
    told = domicile("policy", "schema").json
    assert "tenants" in str(told["properties"])


def test_a_signature_is_over_the_baseline_as_it_is(domicile: Domicile, box: Box) -> None:
    public = create_signing_key(box.root / "dpo.key")
    ran = domicile("policy", "sign", "--config", box.config, "--key", box.root / "dpo.key")
    assert ran.code == 0
    raw = Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    ours, other = (ComplianceKey.read(b64encode(key)) for key in (public.raw, raw))
    content = (box.root / "baseline" / "main.yaml").read_bytes()
    file = PolicyFile("baseline/main.yaml", content)
    assert require_signed([file], [ran.out.encode()], [ours, other]) == (ours.id,)
    with pytest.raises(NotSigned):
        require_signed([file], [ran.out.encode()], [other])
    changed = PolicyFile("baseline/main.yaml", content + b"#")
    with pytest.raises(NotSigned):
        require_signed([changed], [ran.out.encode()], [ours])


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN " + b"PRIVATE KEY-----\n"])
def test_a_key_that_is_none_fails(domicile: Domicile, box: Box, content: bytes) -> None:
    (box.root / "dpo.key").write_bytes(content)
    ran = domicile("policy", "sign", "--config", box.config, "--key", box.root / "dpo.key")
    assert ran.code == 1
    assert ran.err.startswith("error: ")
