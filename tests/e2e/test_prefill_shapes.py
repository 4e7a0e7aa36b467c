"""What the two steps send and read, held against vLLM's own protocol models.

The way a cache takes between two engines (NIXL) needs GPUs and is not run here.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from router.attempts.prefilling import KEEP, keeping
from router.providers.base import Ask
from tests.e2e.parts import SERVE_ENVIRONMENT, Parts

pytestmark = pytest.mark.e2e

CODE = """
import json, sys
from vllm.entrypoints.openai.chat_completion.protocol import (
    ChatCompletionRequest, ChatCompletionResponse)
sent = ChatCompletionRequest.model_validate(json.loads(sys.argv[1]))
params = sent.to_sampling_params(64, {})
print(json.dumps({
    "unknown": sorted(sent.model_extra or {}),
    "kept": params.extra_args["kv_transfer_params"],
    "tokens": [sent.max_tokens, sent.max_completion_tokens],
    "stream": sent.stream,
    "answers": "kv_transfer_params" in ChatCompletionResponse.model_fields,
    "priority": ChatCompletionRequest.model_fields["priority"].annotation.__name__,
}))
"""


def test_vllm_reads_the_first_step_as_it_is_meant(real_parts: Parts) -> None:
    body = {
        "model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True,
        "stream_options": {"include_usage": True}, "max_completion_tokens": 50, "min_tokens": 3,
        "temperature": 0.5,
    }  # fmt: skip
    ask = keeping(Ask("chat.completions", body, json.dumps(body).encode(), True, "m", "r"))
    sent = {**ask.body, "kv_transfer_params": dict(KEEP)}
    done = subprocess.run(
        [str(real_parts.python), "-c", CODE, json.dumps(sent)],
        capture_output=True, text=True, check=True, timeout=300,
        env={**SERVE_ENVIRONMENT, "HOME": str(real_parts.folder), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "unknown": [], "kept": dict(KEEP), "tokens": [1, 1], "stream": False, "answers": True,
        "priority": "int",
    }  # fmt: skip
