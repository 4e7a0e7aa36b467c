import orjson
import pytest

from router.audit.errors import NoteInvalid
from router.audit.receipt import Receipt, parse_receipt

RECEIPT = Receipt("eu-1", 4, "ab" * 32, "note")


def test_a_receipt_reads_back() -> None:
    assert parse_receipt(orjson.dumps(RECEIPT.to_json())) == RECEIPT


@pytest.mark.parametrize(
    "change", [{"log": 1}, {"index": "4"}, {"index": True}, {"leaf": "ab"}, {"checkpoint": None}]
)
def test_what_is_no_receipt(change: dict[str, object]) -> None:
    with pytest.raises(NoteInvalid):
        parse_receipt(orjson.dumps({**RECEIPT.to_json(), **change}))


@pytest.mark.parametrize("text", ["", "[]", "{}", "5", "null", '"text"'])
def test_other_json_is_no_receipt(text: str) -> None:
    with pytest.raises(NoteInvalid):
        parse_receipt(text)


def test_the_two_headers_of_an_answer_are_a_receipt() -> None:
    headers = {"record": RECEIPT.record, "head": RECEIPT.head}
    assert parse_receipt(orjson.dumps(headers)) == RECEIPT


@pytest.mark.parametrize(
    "change",
    [{"record": "eu-1"}, {"record": "eu-1/x/ab"}, {"record": 5}, {"head": "?"}, {"head": None}],
)
def test_other_headers_are_none(change: dict[str, object]) -> None:
    with pytest.raises(NoteInvalid):
        parse_receipt(orjson.dumps({"record": RECEIPT.record, "head": RECEIPT.head, **change}))
