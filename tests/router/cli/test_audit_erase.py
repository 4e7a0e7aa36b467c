"""`domicile audit erase`, with a router that runs and without one."""

import asyncio
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


@pytest.mark.parametrize("words", [(), ("--all", "--tenant", "clinic"), ("--before", "soon")])
def test_what_to_erase_must_be_said(domicile: Domicile, words: tuple[str, ...]) -> None:
    assert domicile("audit", "erase", *words).code == 2
