"""Features: bounded, total, the same everywhere, and about the question."""

from __future__ import annotations

import subprocess
import sys
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.difficulty.features import BUCKETS, HEAD, STRUCTURE, TAIL, extract
from classifiers.view import PromptView


def structure(text: str) -> dict[str, float]:
    return dict(zip(STRUCTURE, extract(PromptView.of_text(text)).structure, strict=True))


@settings(max_examples=200)
@given(st.text(st.characters(), max_size=400))
def test_any_text_has_finite_features_in_range(text: str) -> None:
    features = extract(PromptView.of_text(text))
    assert len(features.structure) == len(STRUCTURE)
    assert all(-1e6 < value < 1e6 for value in features.structure)
    assert all(0 <= bucket < BUCKETS for bucket in features.words)
    assert len(features.words) <= features.count
    assert features.stem.isdisjoint(features.options)
    assert 0.0 <= features.wide <= 1.0


def test_words_are_crc32_of_bytes_and_those_of_options_stand_apart() -> None:
    two, words, more = (crc32(word) % BUCKETS for word in (b"two", b"words", b"more"))
    features = extract(PromptView.of_text("Two Words Two"))
    assert (features.stem, features.options, features.count) == ({two, words}, set(), 3)
    features = extract(PromptView.of_text("Two words\nA. words more"))
    assert (features.stem, features.options, features.count) == ({two}, {words, more}, 4)
    assert features.words == sorted([two, words, more])


def test_hashes_do_not_depend_on_the_process() -> None:
    code = (
        "from classifiers.difficulty.features import extract\n"
        "from classifiers.view import PromptView\n"
        "print(extract(PromptView.of_text('the same text')).words)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert printed == {f"{extract(PromptView.of_text('the same text')).words}\n"}


def test_long_text_is_read_at_both_ends_and_says_so() -> None:
    text = "start " + "middle " * 5000 + "hardquestion"
    features = extract(PromptView.of_text(text))
    assert features.cut
    assert crc32(b"hardquestion") & (BUCKETS - 1) in features.words
    assert features.count <= HEAD + TAIL
    assert not extract(PromptView.of_text("x" * (HEAD + TAIL))).cut


def test_structure_of_a_question_with_options() -> None:
    found = structure("Which of the following is 2+2?\nA. one one\nB. 22\nC. one two")
    assert found["options_distinct"] == 5 / 8, "one, b, 22, c and two of seven words"
    assert found["options_spread"] == pytest.approx(np.log(np.std([7, 5, 10]) + 1))
    assert found["which"] == 1
    assert found["options_numeric"] == 0
    assert found["digits"] > 0
    assert found["symbols"] > 0
    assert structure("How many?\nA. 1\nB. 2.5\nC. $30")["options_numeric"] == 1
    plain = structure("plain words only")
    assert plain["stem"] == pytest.approx(np.log(17))
    assert {value for name, value in plain.items() if name != "stem"} == {0.0}


def test_the_call_is_part_of_the_structure() -> None:
    body = {
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c d"},
        ],
        "tools": [{}, {}],
        "response_format": {"type": "json_schema"},
    }
    found = extract(PromptView.of_chat(body))
    values = dict(zip(STRUCTURE, found.structure, strict=True))
    assert values["turns"] > 0
    assert values["tools"] > 0
    assert values["json_schema"] == values["system"] == 1
    assert found.count == 2, "only the last user message is graded"


def test_wide_is_the_share_of_bytes_outside_ascii() -> None:
    assert extract(PromptView.of_text("你好")).wide == 1.0
    assert extract(PromptView.of_text("hello")).wide == 0.0
    assert 0 < extract(PromptView.of_text("größe")).wide < 0.6
