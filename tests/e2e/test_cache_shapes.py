"""A tenant's salt, held against vLLM's own protocol models.

That vLLM then shares no blocks is vLLM's; `docs/serving.md` tells how to see it.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from router.providers.bodies import with_salt
from router.salts import Salts
from tests.e2e.parts import SERVE_ENVIRONMENT, Parts

pytestmark = pytest.mark.e2e

CODE = """
import json, sys
from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

sent = json.loads(sys.argv[1])
asked = {"prompt": "hi", "input": "hi", "messages": sent["messages"], "max_tokens": 1}
for kind, names in ((ChatCompletionRequest, ("messages",)), (CompletionRequest, ("prompt",)),
                    (ResponsesRequest, ("input",)),
                    (AnthropicMessagesRequest, ("messages", "max_tokens"))):
    body = {"model": "m", "cache_salt": sent["cache_salt"], **{n: asked[n] for n in names}}
    made = kind.model_validate(body)
    assert "cache_salt" in kind.model_fields, kind
    print(made.cache_salt)
"""


def test_vllm_takes_the_salt_on_every_surface(real_parts: Parts) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "cache_salt": "@/ann"}
    salt = Salts(b"s" * 32).of("bank", body["cache_salt"])
    sent = with_salt(json.dumps(body).encode(), body, salt)
    done = subprocess.run(
        [str(real_parts.python), "-c", CODE, sent.decode()],
        capture_output=True, text=True, check=True, timeout=300,
        env={**SERVE_ENVIRONMENT, "HOME": str(real_parts.folder), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stdout.split()[-4:] == [salt] * 4
