"""JSON on request, else a table."""

import json
from collections.abc import Iterator

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


def test_a_long_table_is_printed_as_it_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    printed = list[str]()

    def rows() -> Iterator[tuple[str]]:
        for number in range(2500):
            if number == 2400:
                printed.append(capsys.readouterr().out)
            yield (f"row {number}",)

    print_table("title", ("a",), rows())
    shown = "".join([*printed, capsys.readouterr().out])
    assert "row 1999 " in printed[0]
    assert [shown.count(f"row {number} ") for number in range(2500)] == [1] * 2500
    assert shown.count("title") == 1


def test_brackets_are_text_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t", ("rule",), [("[red]",)])
    assert "[red]" in capsys.readouterr().out


def test_nothing_in_a_cell_speaks_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("t\x1b[2J", ("a",), [("x\x1b]0;title\x07y\tz",)])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert plain("a\nb\u202e\x7fc é") == "a\nb\ufffd\ufffdc é"
