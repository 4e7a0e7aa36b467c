"""vLLM: OpenAI's API on machines of one's own; every parameter passes but the one that moves bytes.

Source: vLLM's protocol module; `kv_transfer_params` names a remote host to move the cache to,
`ec_transfer_params` one for the cache of what is no text.
"""

from __future__ import annotations

from dataclasses import replace

from regions.model import Endpoint
from router.providers.base import Ask, Target
from router.providers.bodies import with_transfer
from router.providers.openai_compatible import MOVES, OpenAiCompatible
from router.transport.messages import OutboundRequest


class Vllm(OpenAiCompatible):
    """A vLLM server in a fleet."""

    kinds = frozenset({"vllm"})
    place_parameters = MOVES

    def encode(self, ask: Ask, endpoint: Endpoint, target: Target, now: float) -> OutboundRequest:
        """See `Provider`: where the cache of the prompt is or goes, if it moves, is said by us."""
        request = super().encode(ask, endpoint, target, now)
        if ask.transfer is None:
            return request
        return replace(request, body=with_transfer(request.body, ask.transfer))
