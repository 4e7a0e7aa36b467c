"""Tokens as upstreams tell them."""

import pytest

from router.usage import Usage, estimate, in_answer, read, read_bedrock


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, Usage(3, 2)),
        ({"prompt_tokens": 3, "total_tokens": 3}, Usage(3, 0)),
        (
            {"prompt_tokens": 9, "completion_tokens": 1,
             "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(9, 1, 4),
        ),
        (
            {"input_tokens": 9, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 4}},
            Usage(9, 1, 4),
        ),
        (
            {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 3,
             "cache_creation_input_tokens": 2},
            Usage(10, 1, 3, 2),
        ),
        ({"prompt_tokens": 3, "completion_tokens": 2, "cache_read_input_tokens": 1}, Usage(3, 2)),
        ({"prompt_tokens": -1, "completion_tokens": True}, None),
        ({"prompt_tokens": 3, "completion_tokens": 1 << 53}, Usage(3, 0)),
        ({"prompt_tokens": 1 << 60, "completion_tokens": 1 << 60}, None),
        ({}, None),
        (None, None),
        ("usage", None),
    ],
)  # fmt: skip
def test_read(told: object, usage: Usage | None) -> None:
    assert read(told) == usage


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}, Usage(3, 2)),
        (
            {"inputTokens": 3, "outputTokens": 2, "cacheReadInputTokens": 10,
             "cacheWriteInputTokens": 4},
            Usage(17, 2, 10, 4),
        ),
        ({"inputTokens": 3}, None),
        ({"inputTokens": 3, "outputTokens": 1 << 60}, None),
        ([], None),
    ],
)  # fmt: skip
def test_read_bedrock(told: object, usage: Usage | None) -> None:
    assert read_bedrock(told) == usage


def test_an_estimate_says_so() -> None:
    assert estimate(9, 4) == Usage(3, 1, estimated=True)
    assert estimate(0, 0).total == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        {"response": {"usage": {"input_tokens": 1, "output_tokens": 2}}},
        {"message": {"usage": {"input_tokens": 1, "output_tokens": 2}}},
        {"usage": None, "message": {"usage": {"input_tokens": 1, "output_tokens": 2}}},
    ],
)
def test_where_answers_tell_it(answer: object) -> None:
    assert in_answer(answer) == Usage(1, 2)


@pytest.mark.parametrize("answer", [None, [], {"usage": []}, {"message": "usage"}])
def test_answers_that_tell_nothing(answer: object) -> None:
    assert in_answer(answer) is None
