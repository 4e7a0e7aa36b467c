"""`domicile audit erase`, with a router that runs and without one."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from router.audit.commands import run_show
from router.audit.openings import read
from tests.router.cli.conftest import Domicile
from tests.router.cli.test_quarantine import served


def logged(root: Path) -> list[dict[str, object]]:
    shown = run_show(root / "log", kind="administration")
    return [dict(one.body) for one in shown if one.body["event"] == "erase"]


def side_file(root: Path) -> Path:
    (path,) = (root / "log").glob("*/openings/openings.jsonl")
    return path


async def test_a_running_router_erases_and_the_log_says_who(
    tmp_path: Path, domicile: Domicile
) -> None:
    async with served(tmp_path) as (world, admin):
        await world.ask()
        words = ("--config", tmp_path / "domicile.yaml", "--admin", admin)
        ran = await asyncio.to_thread(domicile, "audit", "erase", "--tenant", "clinic", *words)
        assert ran.code == 0, ran.err
        assert ran.out.startswith("erased 1 keys and 0 openings; what remains:\n- the entries:")
        assert read(side_file(tmp_path)) == []
    assert [(one["by"], one["tenant"], one["keys"]) for one in logged(tmp_path)] == [
        ("local", "clinic", 1)
    ]


async def test_without_a_router_the_command_does_it_itself(
    tmp_path: Path, domicile: Domicile
) -> None:
    async with served(tmp_path) as (world, _):
        await world.ask()
    config = tmp_path / "domicile.yaml"
    late = ("--before", "2001-01-01", "--config", config, "--json")
    ran = await asyncio.to_thread(domicile, "audit", "erase", *late)
    assert (ran.code, ran.json["keys"]) == (0, 0), ran.err
    ran = await asyncio.to_thread(domicile, "audit", "erase", "--all", "--config", config)
    assert ran.code == 0, ran.err
    assert read(side_file(tmp_path)) == []
    assert [one["keys"] for one in logged(tmp_path)] == [0, 1]


async def test_what_a_log_without_a_process_left_is_erased_too(
    tmp_path: Path, domicile: Domicile
) -> None:
    async with served(tmp_path) as (world, _):
        await world.ask()
    own = side_file(tmp_path)
    config = tmp_path / "domicile.yaml"
    text = config.read_text()
    config.write_text(re.sub(r"(?m)^  id: .*$", "  id: later-1", text))
    assert config.read_text() != text
    (tmp_path / "log" / "later-1").mkdir()
    for token in own.parent.parent.glob("admin.token"):
        shutil.copy(token, tmp_path / "log" / "later-1")
    ran = await asyncio.to_thread(domicile, "audit", "erase", "--all", "--config", config)
    assert ran.code == 0, ran.err
    assert read(own), "another log's stay, and are named"
    name = own.parent.parent.name
    assert f"other logs in this folder: {name}; " in ran.out
    words = ("audit", "erase", "--all", "--config", config, "--log")
    ran = await asyncio.to_thread(domicile, *words, name)
    assert ran.code == 0, ran.err
    assert read(own) == []
    assert [one["keys"] for one in logged(tmp_path)].count(1) == 1
    ran = await asyncio.to_thread(domicile, *words, "eu-9")
    assert (ran.code, name in ran.err) == (2, True)
    assert not (tmp_path / "log" / "eu-9").exists()
    assert domicile(*words, name, "--admin", "http://127.0.0.1:1").code == 2


@pytest.mark.parametrize("words", [(), ("--all", "--tenant", "clinic"), ("--before", "soon")])
def test_what_to_erase_must_be_said(domicile: Domicile, words: tuple[str, ...]) -> None:
    assert domicile("audit", "erase", *words).code == 2
