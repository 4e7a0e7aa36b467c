"""Numbers that JSON has no word for: passed on as null, and the text around them as it came."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.answers.numbers import finite, parsed
from tests.cases.built import built, outcomes
from tests.router.scripted import DONE, JSON, Reply, Scripted, stream

EVENT = (
    b'data: {"model":"tiny","choices":[{"delta":{"content":"%b"},"index":0,'
    b'"finish_reason":%b}]}\n\n'
)
WHOLE = (
    b'{"model":"tiny","choices":[{"message":{"content":"aNaN"},"index":0,"finish_reason":"stop"}]}'
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def strict(word: str) -> object:
    raise AssertionError(word)


def plain(tree: object) -> object:
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else None
    if isinstance(tree, list):
        return [plain(one) for one in tree]
    return {key: plain(one) for key, one in tree.items()} if isinstance(tree, dict) else tree


@given(TREES, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_python_writes_is_read_with_null_for_them(
    tree: object, escaped: bool, indent: int | None
) -> None:
    text = json.dumps(tree, ensure_ascii=escaped, indent=indent).encode("utf-8", "replace")
    changed = finite(text)
    found = text if changed is None else changed
    assert json.loads(found) == plain(json.loads(text))
    if changed is None:
        assert plain(json.loads(text)) == json.loads(text)


@pytest.mark.parametrize(
    "text", [b'{"a":nan}', b'{"a":NaNo}', b'{"a":+NaN}', b'{"a":1NaN}', b'{"a":"NaN', b"{NaN:1}"]
)
def test_nothing_else_becomes_json(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        parsed(text)


def test_a_text_that_is_cut_is_passed_in_one_go() -> None:
    """An endpoint may write any; the loop serves nobody meanwhile."""
    text = b'{"a":"NaN ' + b'\\"x' * 100_000
    began = time.perf_counter()
    assert finite(text) is None
    assert time.perf_counter() - began < 10  # it took minutes
    assert finite(text + b"\\") is None


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_who_writes_them_is_not_ill_and_no_text_is_lost(
    tmp_path: Path, word: str, streamed: bool
) -> None:
    """Any client that asks for `logprobs` may meet them: it would else take a fleet out."""

    logprobs = b'"logprobs":{"content":[{"logprob":%b}]},"index":0' % word.encode()

    def script(host: str, number: int) -> Reply:
        if not streamed:
            return Reply(200, JSON, [WHOLE.replace(b'"index":0', logprobs)])
        said = (EVENT % (text, end) for text, end in ((b"a", b"null"), (b"NaN", b'"stop"')))
        return stream(*[one.replace(b'"index":0', logprobs) for one in said], DONE)

    async with built(tmp_path, script) as world:
        for _ in range(4):
            done = await world.ask("eu", stream=streamed)
            assert done.status == 200
            texts = [one for one in done.written.split(b"data: ") if one and b"[DONE]" not in one]
            read = [json.loads(one, parse_constant=strict)["choices"][0] for one in texts]
            assert {one["logprobs"]["content"][0]["logprob"] for one in read} == {None}
            parts = [one["delta" if streamed else "message"]["content"] for one in read]
            assert "".join(parts) == "aNaN"
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()
        assert world.transport.at("par1") == 0
    assert [one["status"] for one in outcomes(tmp_path)] == ["ok"] * 4


async def test_what_is_no_json_for_another_reason_is_still_told_as_such(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return Reply(200, JSON, [b'{"choices": NaN'])

    async def asked(world: Scripted) -> str:
        return (await world.ask("eu")).code

    async with built(tmp_path, script) as world:
        assert await asked(world) == "bad_answer"


HALVES = ["\\ud83d", "a\\uDE00b", "\\ud83d\\ud83d", "\\ud83d\\\\", "\\\\\\ude00", "\\ud83d\\n"]


@pytest.mark.parametrize("text", HALVES)
@pytest.mark.parametrize("streamed", [True, False])
async def test_half_of_a_character_passes_as_it_came(
    tmp_path: Path, text: str, streamed: bool
) -> None:
    """The next event may hold the other half, and a client puts them together; events that held one
    were left out. See openclaw/openclaw#115536, elizaOS/eliza#30904."""
    whole = WHOLE.replace(b"aNaN", text.encode())
    event = EVENT % (text.encode(), b"null")
    reply = stream(event, DONE) if streamed else Reply(200, JSON, [whole])
    async with built(tmp_path, lambda host, number: reply) as world:
        done = await world.ask("de", stream=streamed)
    assert (done.status, b"incomplete" in done.written) == (200, False)
    assert done.written.count(b'"%b"' % text.encode()) == 1


@given(st.text(st.characters(codec=None), max_size=9))
def test_whatever_javascript_writes_is_read(text: str) -> None:
    """With U+FFFD for each half, as any decoder has it."""
    written = json.dumps(text).encode()
    kept, found = parsed(written)
    assert kept == written
    assert found == json.loads(written).encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )
