"""`check` finds what would end a start: secrets and files that lead nowhere, with their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.cli.init import BASELINE
from router.settings.checking import check
from router.settings.starting import no_folder
from tests.router.folders import AT, CONFIG, write

_EXPORT = '  exports: [{http: "https://o.example.org/v1", region: self:local, format: otel, '
_ANCHOR = "  anchor: {s3: b, region: aws:eu-west-1, credentials: "
_LOG = "log:\n  dir: log\n  signing_key: file:log.key\n"


@pytest.mark.parametrize(
    ("more", "place", "said"),
    [
        ("state: {redis: env:NOWHERE, region: self:local}", "state.redis", "`NOWHERE` is not set"),
        (
            "state: {redis: file:nowhere, region: self:local}",
            "state.redis",
            "can't read the secret",
        ),
        ("state: {redis: env:WEB, region: self:local}", "state.redis", "no redis:// or rediss://"),
        (f'{_LOG}{_EXPORT}token: "env:NOWHERE"}}]', "log.exports.0.token", "`NOWHERE` is not set"),
        (
            f'{_LOG}{_ANCHOR}"file:nowhere"}}',
            "log.anchor.credentials",
            "can't read the secret file",
        ),
        (f'{_LOG}{_ANCHOR}"aws-secret:x"}}', "log.anchor.credentials", "no reference to a secret"),
    ],
)
def test_a_secret_that_leads_nowhere_is_an_error_with_its_place(
    tmp_path: Path, more: str, place: str, said: str
) -> None:
    """A reload doesn't ask: what the log needs was read when the router began."""
    config = CONFIG.replace("log: {dir: log, signing_key: file:log.key}\n", "")
    config = f"{config}{'' if more.startswith('log') else _LOG}{more}\n"
    box = write(tmp_path, config=config)
    environment = {"WEB": "http://127.0.0.1:6379"}
    (problem,) = check(box.config, environment, AT, start=True).problems
    assert f"`{place}`" in problem
    assert said in problem
    assert problem.startswith(f"{box.config}:{len(config.splitlines())}:")
    assert check(box.config, environment, AT).problems == ()


def test_secrets_that_are_there_are_no_problem(tmp_path: Path) -> None:
    box = write(tmp_path, config=f"{CONFIG}state: {{redis: file:redis.url, region: self:local}}\n")
    (tmp_path / "redis.url").write_text("rediss://:secret@redis.internal:6380/1\n")
    assert check(box.config, {}, AT, start=True).problems == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "can't be read: No such file or directory"),
        ("", "is empty; a fleet without replicas has a line with `#`"),
        ("http://a:1\nlocalhost:8000\n", "has no base URL in line 2"),
        ("# none today\n", ""),
        ("http://a:1  # one\n\nhttp://a:2\n", ""),
    ],
)
def test_a_file_without_replicas_is_a_warning(tmp_path: Path, text: str | None, said: str) -> None:
    baseline = BASELINE.replace("url: http://127.0.0.1:8000", "replicas: {file: fra.replicas}")
    box = write(tmp_path, baseline)
    if text is not None:
        (tmp_path / "fra.replicas").write_text(text)
    found = check(box.config, {}, AT, start=True)
    told = [one for one in found.findings if one.code == "replicas_unread"]
    assert found.problems == ()
    assert len(told) == bool(said)
    assert all(said in one.message and one.mark is not None for one in told)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rules/*.yaml", "gone/*.yaml", "`policies.rules`: `gone/*.yaml` matches no file"),
        ("keys.yaml", "gone.yaml", "can't read the keys file"),
        ("file:log.key", "file:gone.key", "`openssl genpkey -algorithm ed25519 -out "),
    ],
)
def test_a_file_that_is_not_there_is_told_where_it_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    box = write(tmp_path, config=CONFIG.replace(old, new))
    line = next(n for n, one in enumerate(box.config.read_text().splitlines(), 1) if new in one)
    (problem,) = check(box.config, {}, AT).problems
    assert problem.startswith(f"{box.config}:{line}:")
    assert said in problem


def test_a_folder_that_is_none_is_told_before_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the system's own answers but for that of a right that whoever runs this may lack."""
    box = write(tmp_path, config=CONFIG.replace("dir: log,", "dir: keys.yaml/log,"))
    (problem,) = check(box.config, {}, AT, start=True).problems
    assert "`log.dir`" in problem
    assert "keys.yaml` is no folder: name another one" in problem
    assert problem.startswith(f"{box.config}:")
    (tmp_path / "made").mkdir()
    (tmp_path / "lost").symlink_to("nowhere")
    assert no_folder(tmp_path / "made") == no_folder(tmp_path / "made" / "later" / "on") == ""
    assert "is no folder" in no_folder(tmp_path / "lost")
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    assert f"`{tmp_path / 'made'}` can't be written by this user" in no_folder(
        tmp_path / "made" / "later"
    )
