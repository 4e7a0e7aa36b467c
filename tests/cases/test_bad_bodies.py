"""Bodies in another writing, and requests with two keys: refused with what to do."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.router.house import KEYS, House, house
from tests.router.wire import ASK, CHAT, request, say


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with house(tmp_path_factory.mktemp("house")) as found:
        yield found


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def still_fine(found: House) -> None:
    assert (await say(found, request())).status == 200
    assert found.router.live.concurrency.total == 0


PACKED = {
    "gzip": gzip.compress(ASK),
    "zlib": zlib.compress(ASK),
    "zlib, fast": zlib.compress(ASK, 1),
    "zlib, best": zlib.compress(ASK, 9),
    "zstd": b"\x28\xb5\x2f\xfd" + ASK,
    "said only": ASK,
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("coding", [b"", b"gzip", b"br", b"x-gzip, identity", b"GZIP"])
async def test_a_compressed_body(running: House, name: str, coding: bytes) -> None:
    """It is not unpacked: how large it becomes is not known before."""
    if not coding and name == "said only":
        coding = b"zstd"
    before = running.hits("self:fra1")
    fields = [b"content-encoding: " + coding] if coding else []
    answered = await say(running, request(PACKED[name], *fields))
    assert (answered.status, answered.code) == (415, "unsupported_media_type")
    assert b"send the JSON itself, in UTF-8" in answered.body
    assert running.hits("self:fra1") == before
    await still_fine(running)


@pytest.mark.parametrize("coding", [b"identity", b"Identity", b""])
async def test_a_body_that_is_said_to_be_plain(running: House, coding: bytes) -> None:
    assert (await say(running, request(ASK, b"content-encoding: " + coding))).status == 200


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
async def test_a_byte_order_mark_is_named(running: House, mark: bytes) -> None:
    answered = await say(running, request(mark + ASK))
    assert (answered.status, answered.code) == (400, "invalid_json")
    assert b"byte order mark" in answered.body


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
async def test_other_encodings_are_named(running: House, coding: str) -> None:
    answered = await say(running, request(ASK.decode().encode(coding)))
    assert (answered.status, answered.code) == (400, "invalid_json")
    assert b"send UTF-8" in answered.body


@pytest.mark.parametrize("half", [b"\\ud83d", b"\\ude00", b"\\ud83d\\ud83d"])
async def test_half_of_a_character_is_named(running: House, half: bytes) -> None:
    """What JavaScript writes of a cut text is JSON to it. See anthropics/claude-code#3277."""
    answered = await say(running, request(ASK.replace(b"}]", b',"name":"a%b"}]' % half)))
    assert (answered.status, answered.code) == (400, "invalid_json")
    assert b"holds half of a character, at line 1 column" in answered.body


@pytest.mark.parametrize(
    "name",
    [
        b"x_domicile_attr_data_class", b"X_Domicile_Attr_data_class", b"x-domicile_attr-data_class",
        b"x-domicileattr-data_class", b"x-domicile", b"x_domicile_deadline",
    ],
)  # fmt: skip
async def test_a_mistyped_header_of_ours_is_no_silence(running: House, name: bytes) -> None:
    """What it was to say is not known, and silence may allow more than that."""
    before = running.hits("self:fra1")
    answered = await say(running, request(ASK, name + b": health"))
    assert (answered.status, answered.code) == (400, "invalid_header")
    assert running.hits("self:fra1") == before


EU, WORLD = KEYS["eu"].encode(), KEYS["world"].encode()


@pytest.mark.parametrize("other", [WORLD, b"unknown", EU + b"x", EU.upper(), b"Bearer " + EU])
async def test_two_keys_that_differ_are_refused(running: House, other: bytes) -> None:
    """Whichever counted, a proxy before us may have looked at the other."""
    for one in (b"Bearer " + EU, b"bearer  " + EU):
        sent = [b"authorization: " + one, b"x-api-key: " + other]
        for pair in (sent, sent[::-1]):
            for line, body in ((CHAT, ASK), (b"GET /v1/models HTTP/1.1", b"")):
                head = b"\r\n".join([line, b"host: x", *pair, b"content-length: %d" % len(body)])
                answered = await say(running, head + b"\r\n\r\n" + body)
                assert (answered.status, answered.code) == (400, "invalid_header"), (pair, line)
                assert EU not in answered.body
    await still_fine(running)


@pytest.mark.parametrize(
    ("bearer", "other"),
    [(EU, EU), (EU, EU + b" "), (EU, b""), (EU, b" "), (b"", EU), (b" ", EU), (b"", EU + b"\t")],
)
async def test_the_same_key_in_both_headers_is_one_key(
    running: House, bearer: bytes, other: bytes
) -> None:
    """An empty header names nobody."""
    answered = await say(running, request(ASK, b"x-api-key: " + other, key=bearer))
    assert answered.status == 200
