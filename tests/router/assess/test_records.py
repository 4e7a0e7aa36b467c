import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router.assess import records as module
from router.assess.records import Unreadable, log_files, records
from tests.router.assess.configs import call

CALLS = [call(number) for number in range(40)]
DOCUMENT = json.dumps({"Records": CALLS})


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records lie across the ends of chunks."""
    monkeypatch.setattr(module, "CHUNK", 97)


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT,
        json.dumps({"Records": CALLS}, indent=2) + "\n",
        "\ufeff" + DOCUMENT,
        json.dumps(CALLS),
        "\n".join(map(json.dumps, CALLS)),
        "".join(map(json.dumps, CALLS)),
        json.dumps({"Events": [{"CloudTrailEvent": json.dumps(c)} for c in CALLS]}),
        json.dumps({"owner": 1, "Records": CALLS}),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_every_shape_gives_the_same_records(tmp_path: Path, text: str, packed: bool) -> None:
    data = text.encode()
    path = tmp_path / "log.json"
    path.write_bytes(gzip.compress(data) if packed else data)
    assert list(records(path)) == CALLS


def test_what_came_before_a_cut_stays_and_the_place_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(DOCUMENT[: len(DOCUMENT) // 2])
    *before, last = records(path)
    assert before == CALLS[: len(before)]
    assert 10 < len(before) < 30
    assert isinstance(last, Unreadable)
    assert f"after its record {len(before)}" in str(last)


@pytest.mark.parametrize("cut", [-1, -2, len(DOCUMENT) - 700])
def test_a_cut_is_found_wherever_it_is(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log.json"
    path.write_text(DOCUMENT[:cut])
    found = list(records(path))
    whole = cut == -1  # without its last brace every record is there
    assert isinstance(found[-1], Unreadable) is not whole


def test_a_packed_file_that_ends_early_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "log.json.gz"
    path.write_bytes(gzip.compress(DOCUMENT.encode())[:-20])
    assert isinstance(list(records(path))[-1], Unreadable)


@pytest.mark.parametrize(
    "content", [b"not json", b'{"Records": [}', b"\x1f\x8b\x08broken", b"[1, 2"]
)
def test_what_is_no_log_is_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(content)
    (found,) = records(path)
    assert isinstance(found, Unreadable)


@pytest.mark.parametrize("content", [b"", b"  \n", b'{"Records": []}', b"[1, null, []]"])
def test_nothing_is_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(content)
    assert not list(records(path))


def test_a_record_without_end_is_not_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RECORD", 1000)
    path = tmp_path / "log.json"
    path.write_text('{"Records": [{"a": "' + "x" * 100_000 + '"}]}')
    (found,) = records(path)
    assert isinstance(found, Unreadable)
    assert "1000 characters" in found.reason


def test_a_packed_bomb_is_read_to_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FILE", 1 << 20)
    path = tmp_path / "log.json.gz"
    path.write_bytes(gzip.compress(b'{"Records": [{"a": 1},' + b" " * (4 << 20)))
    first, found = records(path)
    assert first == {"a": 1}
    assert isinstance(found, Unreadable)
    assert "more than 1048576 characters" in found.reason


def test_log_files_are_found_at_any_depth_without_digests(tmp_path: Path) -> None:
    for name in ("a.json", "b/c/d.json.gz", "CloudTrail-Digest/e.json.gz", "f.txt", "g.json.bak"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = [str(path.relative_to(tmp_path)) for path in log_files(tmp_path)]
    assert found == ["a.json", "b/c/d.json.gz"]


def test_a_file_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    (found,) = records(tmp_path / "gone.json")
    assert isinstance(found, Unreadable)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=st.binary(max_size=300) | st.text('[]{}":, aR1\\n', max_size=120).map(str.encode))
def test_any_bytes_give_records_or_one_fault_at_the_end(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.json"
    path.write_bytes(content)
    found = list(records(path))
    assert not any(isinstance(one, Unreadable) for one in found[:-1])
