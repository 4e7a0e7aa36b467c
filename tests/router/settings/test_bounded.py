"""Files that somebody names: whole, or told why not, and never read for ever."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from router.settings.bounded import SMALL, NotRead, lines, read, read_text


@contextmanager
def piped(content: bytes, times: int = 1) -> Iterator[Path]:
    """A pipe as `<(…)` of a shell makes one; its writer stops when nobody reads any more."""
    out, into = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError):
            for _ in range(times):
                os.write(into, content)
        os.close(into)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield Path(f"/dev/fd/{out}")
    finally:
        os.close(out)
        writer.join()


def test_a_file_and_a_pipe_are_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes("schlüssel\n".encode() * 1000)
    assert read(file) == file.read_bytes()
    assert read_text(file, 11_000) == file.read_text()
    with piped(file.read_bytes(), 20) as pipe:
        assert read(pipe) == file.read_bytes() * 20


def test_a_byte_too_many_is_told(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"x" * 10)
    assert read(file, 10) == b"x" * 10
    with pytest.raises(NotRead, match="over 9 bytes") as caught:
        read(file, 9)
    assert caught.value.filename == str(file)


def test_an_endless_pipe_and_a_device_are_told() -> None:
    with piped(b"y\n" * 4096, 1 << 20) as pipe, pytest.raises(NotRead, match=f"over {SMALL}"):
        read(pipe)
    for device in (Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(NotRead, match="a device, not a file"):
            read(device)
        with pytest.raises(NotRead, match="a device, not a file"):
            list(lines(device))


def test_lines_are_as_many_as_there_are_and_none_is_endless(tmp_path: Path) -> None:
    file = tmp_path / "receipts.jsonl"
    file.write_bytes(b"one\r\n\ntwo\nlast")
    assert list(lines(file, 5)) == [b"one", b"", b"two", b"last"]
    file.write_bytes(b"one\n" + b"x" * 6)
    found = lines(file, 5)
    assert next(found) == b"one"
    with pytest.raises(NotRead, match="a line is over 5 bytes"):
        next(found)
