"""JSON on request, else a table."""

import json

import pytest

from router.cli.shown import plain, print_json, print_table


def test_json_is_one_document_with_true_letters(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"city": "Zürich", "rows": [1, None]})
    out = capsys.readouterr().out
    assert json.loads(out) == {"city": "Zürich", "rows": [1, None]}
    assert "Zürich" in out


def test_a_table_folds_long_words_and_loses_none(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    print_table("title", ("a", "b"), [("1", long), ("2", "short")])
    out = capsys.readouterr().out
    assert out.count("x") == 300
    assert max(map(len, out.splitlines())) <= 120
    assert "title" in out


def test_brackets_are_text_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t", ("rule",), [("[red]",)])
    assert "[red]" in capsys.readouterr().out


def test_nothing_in_a_cell_speaks_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t\x1b[2J", ("a",), [("x\x1b]0;title\x07y\tz",)])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert plain("a\nb\u202e\x7fc é") == "a\nb\ufffd\ufffdc é"
