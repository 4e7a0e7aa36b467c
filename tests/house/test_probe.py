import os
from pathlib import Path

import pytest

from house.probe import Environment, Recorder


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    recorder.module = "router.a"
    return recorder


@pytest.mark.parametrize(
    ("arguments", "writes"),
    [
        (("a", "r", 0), False),
        (("a", "rb", os.O_CLOEXEC), False),
        (("a", "w", 0), True),
        (("a", "r+", 0), True),
        (("a", "xb", 0), True),
        (("a", None, os.O_CREAT), True),
        (("a", None, os.O_RDONLY), False),
        ((os.devnull, "w", 0), False),
        ((3, "w", 0), False),
    ],
)
def test_which_opens_write(recorder: Recorder, arguments: tuple[object, ...], writes: bool) -> None:
    recorder.hear("open", arguments)
    assert recorder.effects == ([("router.a", "writes `a`")] if writes else [])


def test_nothing_is_noted_between_imports(recorder: Recorder) -> None:
    recorder.module = ""
    recorder.hear("socket.connect", ())
    assert recorder.effects == []


def test_the_ipv6_question_of_urllib3_is_no_effect(recorder: Recorder) -> None:
    recorder.hear("socket.bind", (None, ("::1", 0)))
    assert recorder.effects == []
    recorder.hear("socket.bind", (None, ("::1", 80)))
    assert recorder.effects == [("router.a", "binds a socket")]


def test_an_effect_is_noted_once(recorder: Recorder) -> None:
    recorder.hear("socket.connect", ())
    recorder.hear("socket.connect", ())
    assert recorder.effects == [("router.a", "connects a socket")]


def test_the_environment_answers_as_before(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_NAME", "a value")
    environment = Environment(recorder)
    assert environment["A_NAME"] == environment.get("A_NAME") == "a value"
    assert environment.get("NO_NAME", 3) == 3
    assert "NO_NAME" not in environment


def test_a_reader_outside_the_packages_is_not_noted(recorder: Recorder) -> None:
    assert Path(__file__).parts[-3] == "tests"
    Environment(recorder).get("A_NAME")
    assert recorder.effects == []
