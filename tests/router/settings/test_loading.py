"""Files become one checked snapshot, or say why there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policies.model import Priority
from regions.document import DocumentErrors
from router.auth import Principal
from router.config import ConfigError
from router.settings.loading import load_snapshot, log_settings, read_files
from tests.cases.built import BASELINE, ENVIRONMENT, MAIN, Files, now

SECRETS = ("sk-eu-secret", "sk-world-secret", "aws-secret")


def test_everything_is_put_together(tmp_path: Path) -> None:
    shot = Files().load(tmp_path)
    assert set(shot.targets) == set(shot.policy.endpoints)
    assert set(shot.providers) == {"vllm", "openai", "bedrock"}
    assert shot.region == "self:fra1"
    assert len(shot.keys) == 5
    assert shot.targets["openai-eu"]["openai-eu"].url == "https://eu.api.openai.com/v1"


def test_the_content_tells_what_was_loaded_and_no_secret(tmp_path: Path) -> None:
    shot = Files().load(tmp_path)
    content = json.loads(shot.content)
    assert content["baseline"] == {"baseline.yaml": BASELINE}
    assert content["router"] == {"id": "eu-1", "region": "self:fra1"}
    text = shot.content.decode() + repr(shot)
    assert not [secret for secret in SECRETS if secret in text]


def test_the_same_files_have_the_same_digest_and_others_another(tmp_path: Path) -> None:
    first = Files().load(tmp_path)
    assert load_snapshot(tmp_path / "domicile.yaml", ENVIRONMENT, now() + 99).digest == first.digest
    other = Files(
        baseline=BASELINE.replace("de: {grant: {process: DE}}", "de: {grant: {process: FR}}")
    )
    assert other.load(tmp_path).digest != first.digest


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("region: self:fra1\n", "region: self:nowhere\n",
         r"domicile\.yaml:\d+:\d+: `router\.region`: region `self:nowhere`"),
        ("baseline: [baseline.yaml]", "baseline: [none.yaml]", "`none.yaml` matches no file"),
        ("keys: {file: keys.yaml}", "keys: {file: none.yaml}", "can't read the keys file"),
        ("id: eu-1", 'id: eu-1\n  peers: [{region: self:x, url: "https://x"}]',
         r"domicile\.yaml:\d+:\d+: `router\.peers\.0\.region`: "),
    ],
)  # fmt: skip
def test_a_fault_of_the_main_file(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in MAIN
    with pytest.raises((ConfigError, DocumentErrors), match=told):
        Files(main=MAIN.replace(old, new)).load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("kind: vllm, region: self:fra1", "kind: azur, region: self:fra1", "`azur` is not known"),
        ('"env:OPENAI_EU"', '"env:NOT_SET"', "`NOT_SET` is not set"),
        ('"file:aws.json"', '"file:none.json"', "can't read the secret file"),
        ("[fra, par, iad]", "[fra, par, other]", "other"),
        ("  eu: {grant", "  eu2: {grant", "tenant"),
    ],
)
def test_a_fault_of_the_baseline(tmp_path: Path, old: str, new: str, told: str) -> None:
    files = Files(baseline=BASELINE.replace(old, new))
    path = files.write(tmp_path)
    if new == "  eu2: {grant":
        Files().write(tmp_path)
        (tmp_path / "baseline.yaml").write_text(files.baseline)
    with pytest.raises((ConfigError, DocumentErrors), match=told):
        load_snapshot(path, ENVIRONMENT, now())


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('"env:OPENAI_EU"', '"env:NOT_SET"', "openai-eu:", "`NOT_SET` is not set"),
        ('"file:aws.json"', '"file:keys.yaml"', "sonnet-eu:", "credential"),
        ('"https://eu.api.openai.com/v1"', '"https://u@x/v1"', "openai-eu:", "user name"),
        ('"https://api.openai.com/v1"', '"http://api.openai.com/v1"', "openai-world:", "in clear"),
        ("  sonnet-eu: {kind: bedrock, source: eu-central-1,", "  sonnet-eu: {kind: bedrock,",
         "sonnet-eu:", "has no `source`"),
        ("fra: {kind: vllm,", "fra: {kind: sglang,", "fra:", "can't be spoken to"),
    ],
)  # fmt: skip
def test_a_fault_of_an_endpoint_says_where_it_is_written(
    tmp_path: Path, old: str, new: str, line: str, told: str
) -> None:
    text = BASELINE.replace(old, new, 1)
    assert text != BASELINE
    number = 1 + next(n for n, one in enumerate(text.splitlines()) if one.startswith(f"  {line}"))
    with pytest.raises(ConfigError) as raised:
        Files(baseline=text).load(tmp_path)
    assert str(raised.value).startswith(f"baseline.yaml:{number}:3: endpoint `{line[:-1]}`: ")
    assert told in str(raised.value)
    assert str(raised.value).count("endpoint `") == 1


def test_a_fault_of_a_key_says_where_it_is_written(tmp_path: Path) -> None:
    path = Files().write(tmp_path)
    keys = (tmp_path / "keys.yaml").read_text()
    (tmp_path / "keys.yaml").write_text(keys.replace("tenant: eu,", "tenant: nobody-knows,"))
    with pytest.raises(
        ConfigError, match=r"^keys\.yaml:\d+:5: key `key-eu`: tenant `nobody-knows` is in"
    ):
        load_snapshot(path, ENVIRONMENT, now())


def test_a_keys_attribute_must_be_declared(tmp_path: Path) -> None:
    path = Files().write(tmp_path)
    keys = (tmp_path / "keys.yaml").read_text()
    wrong = keys.replace("tenant: eu, ", "tenant: eu, attributes: {data_class: secret}, ")
    assert wrong != keys
    (tmp_path / "keys.yaml").write_text(wrong)
    with pytest.raises(ConfigError, match="no such value"):
        load_snapshot(path, ENVIRONMENT, now())


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://h.example/v1?key=env:URL_KEY", "https://h.example/v1?key=a%20b%26c"),
        ("https://h.example/v1?k=env:URL_KEY&t=file:token", "https://h.example/v1?k=a%20b%26c&t=t"),
        ("https://h.example/v1", "https://h.example/v1"),
    ],
)
def test_a_key_in_a_url_is_a_reference(tmp_path: Path, url: str, asked: str) -> None:
    (tmp_path / "token").write_text("t\n")
    environment = {**ENVIRONMENT, "URL_KEY": "a b&c"}
    files = Files(
        baseline=BASELINE.replace("https://api.openai.com/v1", url), environment=environment
    )
    shot = files.load(tmp_path)
    assert shot.targets["openai-world"]["openai-world"].url == asked
    assert b"a%20b" not in shot.content
    # The host stays in sight: it is what the footprint is judged by.
    assert shot.policy.endpoints["openai-world"].urls == (url,)


def test_the_logs_key_must_outlive_its_process(tmp_path: Path) -> None:
    with pytest.raises(DocumentErrors, match="file:PATH"):
        Files(main=MAIN.replace('"file:log.key"', '"env:LOG_KEY"')).load(tmp_path)


def test_the_logs_key_may_be_in_kms_and_is_not_asked_for_yet(tmp_path: Path) -> None:
    arn = "arn:aws:kms:eu-central-1:111122223333:key/1234"
    shot = Files(main=MAIN.replace('"file:log.key"', f'"kms:{arn}"')).load(tmp_path)
    assert log_settings(shot.config, tmp_path).authority.strength == "kms"


def test_files_are_shown_by_short_names(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    for name in ("b", "a"):
        (tmp_path / "rules" / f"{name}.yaml").write_text("x")
    found = read_files(["rules/*.yaml"], tmp_path)
    assert [one.name for one in found] == ["rules/a.yaml", "rules/b.yaml"]


CLASSES = MAIN.replace("  region: self:fra1\n", "  region: self:fra1\n  priorities: {}\n")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("eu: {grant: {process: EU, retain: EU}}",
         "eu: {grant: {process: EU, retain: EU}, priority: batch}",
         "tenant `eu` has a `priority`"),
        ("  fra: {kind: vllm,", "  fra: {kind: vllm, pool: throughput,",
         "endpoint `fra` has a `pool`"),
        ("  fra: {kind: vllm,", "  fra: {kind: vllm, scheduling: priority,",
         "endpoint `fra` has a `scheduling`"),
        ("attributes:", "apps: {crm: {priority: interactive}}\nattributes:",
         "app `crm` has a `priority`"),
    ],
)  # fmt: skip
def test_classes_that_nobody_would_read_are_refused(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    baseline = BASELINE.replace(old, new)
    assert baseline != BASELINE
    with pytest.raises(ConfigError, match=rf"{told}.*`router.priorities` is not set") as caught:
        Files(baseline=baseline).load(tmp_path)
    file, line, column, _ = str(caught.value).split(":", 3)
    key = told.split("`")[3]
    assert file == "baseline.yaml"
    assert baseline.splitlines()[int(line) - 1][int(column) - 1 :].startswith(f"{key}:")
    shot = Files(main=CLASSES, baseline=baseline).load(tmp_path)
    assert shot.config.router.priorities is not None


def test_a_key_has_a_ceiling_of_its_own(tmp_path: Path) -> None:
    files = Files(main=CLASSES)
    first = files.load(tmp_path)
    keys = tmp_path / "keys.yaml"
    keys.write_text(keys.read_text().replace("tenant: eu,", "tenant: eu, priority: batch,"))
    other = load_snapshot(tmp_path / "domicile.yaml", ENVIRONMENT, now())
    holders = {h.tenant: h.priority for h in other.keys.holders if isinstance(h, Principal)}
    assert holders["eu"] is Priority.BATCH
    assert holders["us"] is None
    assert other.digest != first.digest
    (tmp_path / "domicile.yaml").write_text(MAIN)
    with pytest.raises(ConfigError, match="key `key-eu` has a `priority`"):
        load_snapshot(tmp_path / "domicile.yaml", ENVIRONMENT, now())
