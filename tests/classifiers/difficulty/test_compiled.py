"""The compiled scorer is the Python one to the last bit; without it nothing breaks."""

from __future__ import annotations

import ctypes
import math
import pickle
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example as shown
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.difficulty import compiled
from classifiers.difficulty.artifact import Artifact
from classifiers.difficulty.compiled import CompiledScorer, Library, LibraryError, find, load, place
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.features import HEAD, PLAIN, TAIL, extract
from classifiers.difficulty.head import whole
from classifiers.difficulty.scorer import Difficulty, Scorer
from classifiers.view import PromptView
from router.tiers.compiling import COMPILERS, build

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, COMPILERS)), reason=f"no C compiler here ({', '.join(COMPILERS)})"
)
WORDS = st.sampled_from(
    ["the", "The", "not", "which of the following", "which of", "?", ". ", ".", "\n", "\n\n",
     "\nA. ", "\na. ", "\nB. 7", "b. 12.5%", "$x$", "\\", "1", "42", "=", "(", "é",
     "É", "İ", "ß", "文", "\0", "\r\n", "\t", "\x1f", "\x85", "\u2028",
     "\ud800", "\U0001f600", "a" * 70]
)  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return load(build(tmp_path_factory.mktemp("compiled")))


def pair(artifact: Artifact, library: Library) -> tuple[Scorer, CompiledScorer]:
    model, tables = artifact.pairs["w:s"], artifact.tables["w:s"]
    compiled_scorer = library.scorer(model, tables, artifact.common, whole(model.head))
    assert compiled_scorer is not None
    return Scorer(model, tables, artifact.common), compiled_scorer


def same(artifact: Artifact, library: Library, view: PromptView) -> None:
    python, in_c = pair(artifact, library)
    features = extract(view)
    found = in_c.found(view)
    assert tuple(found.inputs) == python.base(features)[0] + features.structure
    assert found.words == features.count
    measured = in_c.measure(view)
    assert measured == python.measure(features.fields)
    assert math.isfinite(measured[0])


@needs_compiler
@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(exclude_categories=()), max_size=400))
@shown(text="")
@shown(text="\0")
@shown(text="\nA. ")
@shown(text="a\r\nA. b. c")
@shown(text="x" * (HEAD + TAIL + 1))
@shown(text="\U0001f600" * (HEAD + TAIL + 9))
@shown(text="İ" * (HEAD + TAIL))
@shown(text="word " * 100_000)
@shown(text=" ".join(map(chr, range(0x4E00, 0x4E00 + 400))))
def test_any_text(artifact: Artifact, library: Library, text: str) -> None:
    same(artifact, library, PromptView.of_text(text))


@needs_compiler
@settings(max_examples=150, deadline=None)
@given(words=st.lists(WORDS, max_size=120), between=st.sampled_from(["", " ", "\n"]))
def test_texts_of_what_is_looked_for(
    artifact: Artifact, library: Library, words: list[str], between: str
) -> None:
    same(artifact, library, PromptView.of_text(between.join(words)))


@needs_compiler
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tools": [{}, {}, {}]},
        {"response_format": {"type": "json_object"}},
        {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "a b"}]},
        {"messages": [{"role": "user", "content": "a b"}] * 5},
        {"messages": []},
    ],
)
def test_any_shape_of_call(
    artifact: Artifact, library: Library, more: Mapping[str, object]
) -> None:
    body = {"messages": [{"role": "user", "content": "prove that word1 word2 is 3"}], **more}
    same(artifact, library, PromptView.of_chat(body))


@needs_compiler
def test_scores_are_equal_whole(artifact: Artifact, library: Library, fresh: list[Example]) -> None:
    slow, fast = Difficulty(artifact, "w", "s"), Difficulty(artifact, "w", "s", library)
    for one in fresh:
        assert fast.score(one.view) == slow.score(one.view)


@needs_compiler
def test_threads_and_calls_with_tools_never_share_what_is_written(
    artifact: Artifact, library: Library, fresh: list[Example]
) -> None:
    tools = {"messages": [{"role": "user", "content": "a b"}], "tools": [{}]}
    views = [one.view for one in fresh[:100]] + [PromptView.of_chat(tools)] * 20
    difficulty = Difficulty(artifact, "w", "s", library)
    alone = [Difficulty(artifact, "w", "s").score(view) for view in views]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(difficulty.score, views * 10)) == alone * 10
    finally:
        sys.setswitchinterval(before)


@needs_compiler
@pytest.mark.parametrize("compiled_too", [False, True])
def test_it_goes_to_another_process_whole(
    artifact: Artifact, library: Library, fresh: list[Example], compiled_too: bool
) -> None:
    sent = Difficulty(artifact, "w", "s", library if compiled_too else None)
    found = pickle.loads(pickle.dumps(sent))
    assert isinstance(found, Difficulty)
    assert (found._compiled is not None) == compiled_too
    assert found.score(fresh[0].view) == sent.score(fresh[0].view)


@needs_compiler
def test_more_bytes_than_are_ever_read_are_refused(artifact: Artifact, library: Library) -> None:
    _, in_c = pair(artifact, library)
    with pytest.raises(LibraryError, match="bytes is longer"):
        in_c._call(b"x" * 100_000, in_c._room(PLAIN))


@needs_compiler
def test_a_head_it_has_no_room_for_is_scored_in_python(
    artifact: Artifact, library: Library
) -> None:
    model, tables = artifact.pairs["w:s"], artifact.tables["w:s"]
    head = whole(model.head)
    wide = head._replace(rows=head.rows[:1] * (compiled.ROWS + 1))
    assert library.scorer(model, tables, artifact.common, wide) is None


def test_without_a_library_python_serves_and_says_so(tmp_path: Path) -> None:
    library, said = find(tmp_path)
    assert library is None
    assert said == "pure Python; `domicile classifier compile` makes it faster"


def test_a_library_that_is_none_is_told_and_not_used(tmp_path: Path) -> None:
    place(tmp_path).write_bytes(b"no library")
    library, said = find(tmp_path)
    assert library is None
    assert said.startswith("pure Python: ")
    assert "compile it again" in said


@needs_compiler
def test_a_library_of_another_version_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build(tmp_path)
    monkeypatch.setattr(compiled, "Found", ctypes.c_double * 3)
    with pytest.raises(LibraryError, match="another version"):
        load(path)


@needs_compiler
def test_where_it_lies_it_is_found(tmp_path: Path) -> None:
    path = build(tmp_path)
    library, said = find(tmp_path)
    assert library is not None
    assert said == f"compiled ({path.name})"
    assert path == place(tmp_path)
