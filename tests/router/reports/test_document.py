"""A report as data."""

from router.reports.document import Evidence, Line, Report, Section, Table


def test_numbers_and_what_is_too_small() -> None:
    table = Table("t", ("a", "n"), [Line(("x", 1234), "E1"), Line(("y", None))])
    found = Report("R", "all", "", [("total", 5), ("few", None)],
                   [Section("s", "S", ("p",), (), (table,))],
                   [Evidence("E1", "x", [("eu-1/3", "q1")], "cmd")], 5)  # fmt: skip
    assert [found.shown(one) for one in ("x", 1234, None)] == ["x", "1,234", "fewer than 5"]
    assert table.linked
    assert found.to_json()["facts"] == {"total": 5, "few": None}
    assert found.to_json()["evidence"] == {
        "E1": {"what": "x", "records": [{"record": "eu-1/3", "request": "q1"}], "command": "cmd"}
    }
    sections = found.to_json()["sections"]
    assert isinstance(sections, list)
    assert sections[0]["tables"][0]["rows"] == [
        {"a": "x", "n": 1234, "evidence": "E1"}, {"a": "y", "n": None},
    ]  # fmt: skip
