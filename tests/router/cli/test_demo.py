"""`domicile demo`: its help is quick and says what it leaves."""

from __future__ import annotations

from click.testing import CliRunner

from router.cli.demo import command


def test_help() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.exit_code == 0
    assert "--keep" in result.output
    assert "loopback" in result.output
