"""Sums over what may be told, and the commands that list what stands behind them."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from router.cli.main import main
from router.reports.view import most, utc
from tests.router.audit.logbox import LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import filled, report


def test_the_largest_come_first() -> None:
    assert most({"a": 1, "b": 3, "c": 3}) == [("b", 3), ("c", 3), ("a", 1)]
    assert utc(0) == "1970-01-01T00:00:00+00:00"


@pytest.fixture
async def box(plain: LogBox) -> LogBox:
    made = await filled(plain, [
        Did(), Did("shop; rm -rf $HOME"), Did("shop; rm -rf $HOME"), Did(code="no_grant"),
        Did(code="misdirected"), Did("bank", status="open"),
        Did("bank", endpoint="", failed=("fra",), status="failed"),
    ])  # fmt: skip
    await made.log.tick()
    return plain


def test_each_command_lists_the_requests_of_its_figure(box: LogBox) -> None:
    found = report(box)
    assert len(found.evidence) >= 6
    for one in found.evidence:
        words = shlex.split(one.command)
        assert words[0] == "domicile"
        ran = CliRunner().invoke(main, [*words[1:], "--json"])
        assert ran.exit_code == 0, ran.output
        for _, request in one.records:
            assert f'"{request}"' in ran.output
