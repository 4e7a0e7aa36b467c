"""How entries are shown, and which errors are a usage error."""

import dataclasses
import json
from pathlib import Path

import click
import pytest

from router.audit.commands import UsageError
from router.audit.lines import Value
from router.audit.reading import Place, Shown
from router.cli import audit_shown
from router.cli.audit_shown import print_entries, usage, when

ONE = Shown(
    Place("eu-1", "0.jsonl", 3, 2), "decision", "r1", 1_800_000_000_123_456, {"plan": ["é"]}
)


def test_entries_are_json_lines_or_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries("log", [ONE], True)
    assert capsys.readouterr().out == (
        '{"place": {"log": "eu-1", "index": 2, "line": 3}, "kind": "decision", "id": "r1", '
        '"time": "2027-01-15T08:00:00.123+00:00", "body": {"plan": ["é"]}}\n'
    )
    print_entries("log", [ONE], False)
    shown = capsys.readouterr()
    assert "decision" in shown.out
    assert "eu-1/2" in shown.out, "several logs have an entry of one index"
    assert shown.err == ""


def test_a_table_has_the_beginning_of_long_lists(capsys: pytest.CaptureFixture[str]) -> None:
    """An allowed set names hundreds of places; JSON has them all."""
    places: list[Value] = [f"aws:place-{number}" for number in range(300)]
    allowed: dict[str, Value] = {"process": places, "rules": [{"of": places[:7]}]}
    body: dict[str, Value] = {"allowed": allowed, "plan": places[:3]}
    one = dataclasses.replace(ONE, body=body)
    print_entries("log", [one], False)
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) < 40
    assert "… 294 more" in shown.out.replace("│", "")
    assert "`--json` shows all of it" in shown.err
    print_entries("log", [one], True)
    assert json.loads(capsys.readouterr().out)["body"] == body


def test_a_usage_error_is_clicks() -> None:
    @usage
    def command() -> None:
        raise UsageError("no such file")

    with pytest.raises(click.UsageError, match="no such file"):
        command()


def test_a_time_is_told_in_utc() -> None:
    assert when(0) == "1970-01-01T00:00:00.000+00:00"


def test_no_command_turns_usage_errors_by_hand() -> None:
    folder = Path(audit_shown.__file__).parent
    turning = [p.name for p in folder.glob("*.py") if "except UsageError" in p.read_text()]
    assert turning == ["audit_shown.py"]
