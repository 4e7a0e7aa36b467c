"""`domicile audit witness`: a key, then a server that a router's log is anchored at."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from router.audit.anchors.cosign import read_witness_key
from router.audit.anchors.witness import AnchorRefused, Answer, Witness, WitnessAnchor
from router.audit.errors import NoteInvalid
from router.audit.layout import Folder
from router.audit.note import parse_checkpoint
from router.audit.reading import LogReader
from router.audit.verify import verify
from router.entries.anchoring import publishers
from router.settings.config_log import AnchorSection
from router.transport.client import HttpTransport
from tests.router.audit.logbox import LogBox
from tests.router.cli.conftest import START, Domicile


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    await box.refill(3)
    return box


@pytest.fixture
def url(
    domicile: Domicile, filled: LogBox, free_port: Callable[[], int]
) -> Iterator[tuple[str, str]]:
    """A witness as a program of its own: its URL and vkey."""
    root = filled.root
    vkey = domicile("audit", "witness", "key", root / "w.key", "--name", "w.example").out.strip()
    log = domicile("audit", "vkey", filled.key_file, "--log", "eu-1").out
    (root / "eu-1.vkey").write_text(log)
    port = free_port()
    words = ["audit", "witness", "serve", root / "seen", "--key", root / "w.key",
             "--name", "w.example", "--log", root / "eu-1.vkey",
             "--listen", f"127.0.0.1:{port}"]  # fmt: skip
    running = subprocess.Popen([sys.executable, "-c", START, *map(str, words)])
    try:
        yield f"http://127.0.0.1:{port}", vkey
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(20)


async def test_a_log_is_anchored_there(filled: LogBox, url: tuple[str, str]) -> None:
    section = AnchorSection(witness=url[0], key=url[1])
    transport = HttpTransport()
    loop = asyncio.get_running_loop()
    made = publishers(
        section, filled.settings(), transport, (time.time, loop.time), {}, filled.root
    )
    folder = Folder(filled.folder).log("eu-1")
    newest = parse_checkpoint(folder.checkpoint.read_text())
    try:
        for attempt in range(100):
            try:
                await made["w.example"](newest)
                break
            except AnchorRefused:
                assert attempt < 99
                await asyncio.sleep(0.1)
    finally:
        await transport.close()
    cosigned = parse_checkpoint((folder.path / "cosigned" / "w.example.note").read_text())
    assert read_witness_key(url[1]).cosigned_at(cosigned) is not None
    verdict = verify(filled.folder, against=[cosigned], public_keys=[filled.key])
    assert verdict.statuses == ["intact"]


async def test_a_witness_under_another_name_shows_its_vkey_and_is_refused_by_it(
    domicile: Domicile, filled: LogBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, log = tmp_path / "w.key", domicile("audit", "vkey", filled.key_file, "--log", "eu-1").out
    made = read_witness_key(domicile("audit", "witness", "key", key, "--name", "w.example").out)
    served: list[Witness] = []
    monkeypatch.setattr("router.witness.witness_app", served.append)
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: None)
    ran = domicile("audit", "witness", "serve", tmp_path / "seen", "--key", key,
                   "--name", "other.example", "--log", log.strip())  # fmt: skip
    (witness,) = served
    assert witness.key.vkey in ran.err
    assert witness.key.vkey != made.vkey

    async def send(body: bytes) -> Answer:
        return witness.add_checkpoint(body)

    folder = Folder(filled.folder).log("eu-1")
    anchor = WitnessAnchor(made, LogReader(folder), send)
    with pytest.raises(AnchorRefused, match=r"`w\.example` sent no .* but of `other\.example`"):
        await anchor.publish(parse_checkpoint(folder.checkpoint.read_text()))


def test_a_vkey_of_the_other_kind_is_named_as_one(
    domicile: Domicile, filled: LogBox, tmp_path: Path
) -> None:
    made = domicile("audit", "witness", "key", tmp_path / "w.key", "--name", "w.example").out
    log = domicile("audit", "vkey", filled.key_file, "--log", "eu-1").out
    ran = domicile("audit", "verify", filled.folder, "--key", made.strip())
    assert "`w.example` is a witness's vkey, not a log's" in ran.err
    with pytest.raises(NoteInvalid, match="`eu-1` is a log's vkey, not a witness's"):
        read_witness_key(log)


def test_a_key_is_made_once(domicile: Domicile, tmp_path: Path) -> None:
    words = ("audit", "witness", "key", tmp_path / "w.key", "--name", "w")
    assert domicile(*words).out == domicile(*words).out
    assert (tmp_path / "w.key").stat().st_mode & 0o777 == 0o600


def test_what_can_not_be_served_is_said(domicile: Domicile, tmp_path: Path) -> None:
    key = tmp_path / "w.key"
    domicile("audit", "witness", "key", key, "--name", "w")
    words = ("audit", "witness", "serve", tmp_path / "seen", "--key", key, "--name", "w")
    assert domicile(*words).code == 2
    assert domicile(*words, "--log", "nonsense").code == 1
    assert domicile(*words, "--log", "a+b+c").code == 1
    assert domicile(*words, "--log", "x", "--listen", "here").code == 2
