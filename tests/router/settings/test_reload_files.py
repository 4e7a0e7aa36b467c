"""One digest over everything a configuration refers to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from router.config import Config, load
from router.settings.reload_files import fingerprint, needs_restart, referred
from tests.router.folders import Box, sound
from tests.router.reloading import watched


def edit(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    return change


def prepared(root: Path) -> Box:
    box = sound(root)
    (root / "token").write_text("a")
    path = root / "baseline" / "main.yaml"
    named = '{kind: vllm, credentials: "file:token", region: self:par1'
    path.write_text(path.read_text().replace("{kind: vllm, region: self:par1", named))
    listed = "rules: [rules/*.yaml], cases: [cases/*.yaml]"
    box.config.write_text(box.config.read_text().replace("rules: [rules/*.yaml]", listed))
    return box


@pytest.mark.parametrize(
    "change",
    [
        edit("domicile.yaml", "version: 1"),
        edit("baseline/main.yaml", "version: 1"),
        edit("baseline/more.yaml", "version: 1"),
        edit("baseline/main.yaml.sig", "x"),
        edit("baseline/accepted-drift/a.yaml", "x"),
        edit("baseline/accepted-drift/a.yaml.sig", "x"),
        edit("rules/example.yaml", "version: 1"),
        edit("rules/new.yaml", "version: 1"),
        edit("cases/new.yaml", "x"),
        edit("keys.yaml", "x"),
        edit("token", "b"),
        lambda root: (root / "token").unlink(),
        lambda root: (root / "rules" / "example.yaml").unlink(),
        lambda root: (root / "log.key").write_text("another"),
    ],
)
def test_every_change_is_noticed(tmp_path: Path, change: Callable[[Path], None]) -> None:
    box = prepared(tmp_path)
    before = fingerprint(box.config)
    assert fingerprint(box.config) == before
    change(tmp_path)
    assert fingerprint(box.config) != before


def test_files_that_nothing_refers_to_do_not_count(tmp_path: Path) -> None:
    box = prepared(tmp_path)
    before = fingerprint(box.config)
    edit("rules/readme.txt", "x")(tmp_path)
    edit("notes.yaml", "x")(tmp_path)
    os.utime(tmp_path / "token", (1, 1))
    assert fingerprint(box.config) == before


def test_a_broken_configuration_still_has_a_digest(tmp_path: Path) -> None:
    box = prepared(tmp_path)
    box.config.write_text("{")
    assert set(referred(box.config)) == {box.config}
    box.config.unlink()
    assert fingerprint(box.config)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("id: local-1", "id: other", ["router.id"]),
        ("127.0.0.1:8080", "127.0.0.1:8081", ["router.listen"]),
        ("127.0.0.1:9090", "127.0.0.1:9091", ["router.admin"]),
        ("log: {dir: log,", "log: {dir: log2,", ["log"]),
        ("keys: {", "state: {redis: env:R, region: self:fra1}\nkeys: {", ["state"]),
        ("keys: {", "watch: {probe: 5s}\nkeys: {", ["watch"]),
        ("keys.yaml", "keys2.yaml", []),
        ("https://us.", "https://eu.", []),
    ],
)
def test_what_needs_a_new_process(tmp_path: Path, old: str, new: str, named: list[str]) -> None:
    box = prepared(tmp_path)
    before: Config = load(box.config)
    text = box.config.read_text()
    assert old in text
    box.config.write_text(text.replace(old, new))
    assert needs_restart(before, load(box.config)) == named


@pytest.mark.parametrize(
    ("deadline", "named"),
    [(600.0, ["router.limits.deadline"]), (540.0, []), (60.0, [])],
)
def test_seats_in_redis_outlast_the_deadline(
    tmp_path: Path, deadline: float, named: list[str]
) -> None:
    box = prepared(tmp_path)
    text = box.config.read_text()
    box.config.write_text(text + "\nstate: {redis: 'env:R', region: 'self:fra1'}\n")
    before = load(box.config)
    limits = before.router.limits.model_copy(update={"deadline": deadline})
    after = before.model_copy(
        update={"router": before.router.model_copy(update={"limits": limits})}
    )
    assert needs_restart(before, after) == named
    assert needs_restart(after, before) == []


async def test_a_secret_that_is_read_at_the_start_alone_is_told(tmp_path: Path) -> None:
    """The reload was called loaded, and exports went on with the old token until they failed."""
    box = sound(tmp_path)
    text, token = box.config.read_text(), tmp_path / "token"
    export = '{format: ocsf, http: "https://127.0.0.1:1/x", region: self:fra1, token: "file:token"}'
    assert "file:log.key}" in text
    box.config.write_text(text.replace("file:log.key}", f"file:log.key, exports: [{export}]}}"))
    token.write_text("the-old-one")
    async with watched(box) as world:
        notes = world.router.live.notes
        for secret, told in (("the-new-one", True), ("the-old-one", False)):
            token.write_text(secret)
            await world.settle()
            assert world.router.live.files.refused == ""
            assert ("log.exports[0].token" in notes.get("restart", "")) is told
