"""The configuration file: units, references, addresses, unknown keys, the search for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from regions.document import DocumentErrors
from router.config import ConfigError, WatchSection, expand, find, load

GOOD = """\
version: 1
router: {id: eu-1, region: aws:eu-central-1, listen: 0.0.0.0:8080, admin: 127.0.0.1:9090,
         workers: 1, peers: [{region: aws:us-east-1, url: https://us.example.com}],
         limits: {body: 20MiB, deadline: 300s, queue: 10s, drain: 120s}}
keys: {file: keys.yaml}
policies: {baseline: [baseline/*.yaml], rules: [rules/*.yaml], signed_by: [file:dpo.pub]}
log: {dir: log, signing_key: file:log.key, durability: local,
      anchor: {s3: acme-anchor, region: aws:eu-west-1},
      seal: {s3: acme-log-eu, region: aws:eu-central-1, mode: COMPLIANCE, retain: 3y}}
state: {redis: env:REDIS_URL, region: aws:eu-central-1}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "domicile.yaml"
    path.write_text(text)
    return path


def test_the_documented_file_loads(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD))
    assert config.router.listen == ("0.0.0.0", 8080)
    assert config.router.limits.body == 20 << 20
    assert config.router.limits.deadline == 300
    assert config.router.peers[0].region == "aws:us-east-1"


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("version: 1", "version: 2", "version"),
        ("body: 20MiB", "body: 20", "20MiB"),
        ("deadline: 300s", "deadline: 300 parsecs", "unit"),
        ("deadline: 300s", "deadline: 0s", "deadline"),
        ("workers: 1", "workers: 0", "workers"),
        ("workers: 1", "wrokers: 1", "wrokers"),
        ("dir: log", 'dir: "lo\\0g"', "`log.dir`: a NUL character"),
        ("[baseline/*.yaml]", '["b\\0"]', "`policies.baseline`: a NUL character"),
        ("admin: 127.0.0.1:9090", "admin: here", "HOST:PORT"),
        ("admin: 127.0.0.1:9090", "admin: 127.0.0.1:99999", "HOST:PORT"),
        ("file:log.key", "hunter2", "reference"),
        ("durability: local", "durability: maybe", "durability"),
        ("id: eu-1", "id: EU 1", "id"),
        ("state: {redis: env:REDIS_URL", "state: {redis: 'redis://:pw@h'", "reference"),
        ("{s3: acme-anchor, region: aws:eu-west-1}", "{s3: acme-anchor}", "stand together"),
        ("{s3: acme-anchor, region: aws:eu-west-1}", "{witness: https://w}", "stand together"),
        ("{s3: acme-anchor, region: aws:eu-west-1}", "{keep: 1y}", "an anchor is"),
        ("mode: COMPLIANCE", "mode: SOFT", "mode"),
        ("retain: 3y", "retain: forever", "unit"),
        ("retain: 3y", "retain: 3y, local: 3y", "outlives it"),
        ("mode: COMPLIANCE, retain: 3y", "mode: GOVERNANCE, retain: 3y, local: 1d", "COMPLIANCE"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, good: str, bad: str, words: str) -> None:
    assert good in GOOD
    with pytest.raises(DocumentErrors, match=words) as caught:
        load(written(tmp_path, GOOD.replace(good, bad)))
    assert "domicile.yaml:" in str(caught.value)


def test_a_secret_in_the_file_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(DocumentErrors) as caught:
        load(written(tmp_path, GOOD + "\nsecret_key: hunter2\n"))
    assert "secret_key" in str(caught.value)


@pytest.mark.parametrize("key", ["largest", "window"])
def test_a_number_too_large_to_count_with(tmp_path: Path, key: str) -> None:
    unit = {"largest": "GiB", "window": "d"}[key]
    with pytest.raises(DocumentErrors, match=f"idempotency.{key}.*too large"):
        load(written(tmp_path, f"{GOOD}\nidempotency: {{{key}: {'9' * 400}{unit}}}\n"))


def test_a_file_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't read .*: No such file"):
        load(tmp_path / "domicile.yaml")


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="domicile init"):
        find(None, {})
    here = written(tmp_path, GOOD)
    assert find(None, {}).resolve() == here
    other = tmp_path / "other.yaml"
    other.write_text(GOOD)
    assert find(None, {"DOMICILE_CONFIG": str(other)}) == other
    assert find(str(here), {"DOMICILE_CONFIG": str(other)}) == here
    with pytest.raises(ConfigError, match="no configuration at"):
        find(str(tmp_path / "none.yaml"), {})


def test_globs_must_find_something(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    with pytest.raises(ConfigError, match="matches no file"):
        expand(("rules/*.yaml",), tmp_path)
    for name in ("b.yaml", "a.yaml"):
        (tmp_path / "rules" / name).write_text("")
    assert [p.name for p in expand(("rules/*.yaml",), tmp_path)] == ["a.yaml", "b.yaml"]
    assert expand((str(tmp_path / "rules" / "a.yaml"),), Path("/")) == (tmp_path / "rules/a.yaml",)
    (tmp_path / "rules" / ".#a.yaml").write_text("")
    (tmp_path / "main").mkdir()
    for base, pattern in ((tmp_path, "rules/*.yaml"), (tmp_path / "main", "../rules/*.yaml")):
        assert [p.name for p in expand((pattern,), base)] == ["a.yaml", "b.yaml"]
        asked = pattern.replace("*", ".*")
        assert [p.name for p in expand((asked,), base)] == [".#a.yaml"]


def test_staleness_below_two_scrapes_is_refused() -> None:
    with pytest.raises(ValueError, match="below two scrapes of 1 s"):
        WatchSection.model_validate({"scrape": "1s", "stale": "200ms"})
    assert WatchSection.model_validate({"scrape": "1s", "stale": "2s"}).stale == 2


@pytest.mark.parametrize(
    ("export", "told"),
    [
        ("{format: cef}", "one of"),
        ("{format: cef, file: a, http: 'https://a'}", "one of"),
        ("{format: cef, http: 'https://a'}", "need the `region`"),
        ("{format: cef, file: a, region: self:fra1}", "a file is here"),
        ("{format: cef, syslog: 'tls://a', region: r, token: 'env:T'}", "`token` is for"),
        ("{format: cef, file: a, ca: b.pem}", "`ca` is for"),
        ("{format: cef, http: 'https://a', region: r, token: secret}", "by reference"),
        ("{format: cef, http: 'http://a.example', region: r}", "in clear"),
        ("{format: cef, syslog: 'udp://a', region: r}", "is not `tls://"),
        ("{format: xml, file: a}", "format"),
    ],
)
def test_exports_that_can_t_be(tmp_path: Path, export: str, told: str) -> None:
    text = GOOD.replace("durability: local,", f"durability: local, exports: [{export}],")
    with pytest.raises(DocumentErrors, match=told):
        load(written(tmp_path, text))


def test_exports_have_names(tmp_path: Path) -> None:
    exports = (
        "[{format: cef, file: a.cef}, {format: otel, http: 'https://c:4318/v1/logs', region: r},"
        " {format: ocsf, syslog: 'tls://s.example', region: r}]"
    )
    text = GOOD.replace("durability: local,", f"durability: local, exports: {exports},")
    found = load(written(tmp_path, text)).log.exports
    assert [one.name for one in found] == ["a.cef", "c:4318", "s.example"]
