"""vLLM: OpenAI's API on machines of one's own; every parameter passes but the one that moves bytes.

Source: vLLM's protocol module; `kv_transfer_params` names a remote host to move the cache to,
`ec_transfer_params` one for the cache of what is no text.
"""

from __future__ import annotations

from router.providers.openai_compatible import MOVES, OpenAiCompatible


class Vllm(OpenAiCompatible):
    """A vLLM server in a fleet."""

    kinds = frozenset({"vllm"})
    place_parameters = MOVES
