"""vLLM: OpenAI's API on machines of one's own; every parameter passes but the one that moves bytes.

Source: vLLM's protocol module; `kv_transfer_params` names a remote host to move the cache to.
"""

from __future__ import annotations

from router.providers.openai_compatible import OpenAiCompatible


class Vllm(OpenAiCompatible):
    """A vLLM server in a fleet."""

    kinds = frozenset({"vllm"})
    place_parameters = frozenset({"kv_transfer_params"})
