"""litellm's translation between OpenAI's chat and Bedrock's Converse, and nothing else of it.

Only pure functions are called: no client, no callback, no cache, no retry, no fallback. litellm
reads settings from the environment when it is imported and would load a `.env` file, fetch a
price list and log prompts; all of that is off here, whatever the environment says. What it
drops or changes in silence is found by `converse_ask`, which compares in and out.
"""

from __future__ import annotations

import copy
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

_WHILE_IMPORTING = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",  # else a `.env` file is loaded
    "LITELLM_LOG": "ERROR",
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_CALLBACKS = (
    "callbacks", "input_callback", "success_callback", "failure_callback", "service_callback",
    "_async_success_callback", "_async_failure_callback", "_async_input_callback",
)  # fmt: skip
_OFF = (
    "drop_params", "modify_params", "bedrock_neutralize_orphaned_tool_blocks", "telemetry",
    "set_verbose", "cache", "bedrock_request_metadata_fields",
)  # fmt: skip

_ANSWER = (
    b'{"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"stopReason":"end_turn",'
    b'"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}'
)
_EVENTS: tuple[Mapping[str, object], ...] = (
    {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "x", "name": "x"}}},
    {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "x"}}},
    {"stopReason": "end_turn"},
)

JSON_TOOL = "json_tool_call"
"""The tool that litellm forces where a model has no schema of its own for answers."""


class Untranslatable(Exception):
    """litellm can't express this request. Its own words may hold the prompt, so they are gone."""


@dataclass(frozen=True, slots=True)
class Translated:
    """A Converse body, and whether the answer's JSON comes as a call of `JSON_TOOL`."""

    body: dict[str, object]
    json_tool: bool


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """These settings and no other of litellm's, for as long as it is being imported."""
    before = {k: v for k, v in os.environ.items() if k.startswith("LITELLM_")}
    for name in before:
        del os.environ[name]
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]
        os.environ.update(before)


def _silence() -> None:
    """Its loggers write prompts; they are off before it begins to use them, and after."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.disabled = True
        logger.handlers.clear()


def _quiet(litellm: ModuleType) -> None:
    _silence()
    for name in _CALLBACKS:
        setattr(litellm, name, [])
    for name in _OFF:
        setattr(
            litellm, name, None if name in ("cache", "bedrock_request_metadata_fields") else False
        )
    litellm.suppress_debug_info = True  # type: ignore[attr-defined]


class Converse:
    """The translation. Making one imports litellm: seconds, so it is done before ready."""

    def __init__(self) -> None:
        # Its types complain while their schemas are built, at import and at first use.
        with _environment(_WHILE_IMPORTING), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _silence()
            import litellm
            from litellm.llms.bedrock.chat.converse_transformation import AmazonConverseConfig
            from litellm.llms.bedrock.chat.invoke_handler import AWSEventStreamDecoder

            _quiet(litellm)
            self._config = AmazonConverseConfig()
            self._stream = AWSEventStreamDecoder
            self._made = litellm.ModelResponse
            self._supported: dict[str, frozenset[str]] = {}
            self._warm_up()

    def __reduce__(self) -> tuple[type[Converse], tuple[()]]:
        """A worker makes its own: unpickled by its parts, it would have litellm imported with all
        that is off here."""
        return Converse, ()

    def _warm_up(self) -> None:
        """One of each, so that the first request finds everything built."""
        self.request("amazon.nova-lite-v1:0", [{"role": "user", "content": "x"}], {})
        self.answer(_ANSWER, False)
        chunks = self.chunks(False)
        for event in _EVENTS:
            chunks.delta(event)

    def supported(self, model: str) -> frozenset[str]:
        """OpenAI parameters that the model takes, by litellm's table; `top_k` it judges later."""
        if model not in self._supported:
            known = self._config.get_supported_openai_params(model)
            self._supported[model] = frozenset(known) | {"top_k"}
        return self._supported[model]

    def request(
        self,
        model: str,
        messages: Sequence[Mapping[str, object]],
        parameters: Mapping[str, object],
    ) -> Translated:
        """The Converse body of messages and parameters, neither of which is changed.

        Raises:
            Untranslatable: litellm refuses.
        """
        try:
            options = self._config.map_openai_params(
                non_default_params=copy.deepcopy(dict(parameters)),
                optional_params={},
                model=model,
                drop_params=False,
            )
            if "top_k" in parameters:
                options["top_k"] = parameters["top_k"]
            json_tool = bool(options.get("json_mode")) and "outputConfig" not in options
            body = self._config.transform_request(
                model=model,
                messages=copy.deepcopy(list(messages)),
                optional_params=options,
                litellm_params={},
                headers={},
            )
        except Exception:  # noqa: BLE001  its errors are many, and their texts hold prompts
            raise Untranslatable from None
        return Translated(dict(body), json_tool)

    def answer(self, body: bytes, json_tool: bool) -> Mapping[str, object]:
        """litellm's reading of a whole Converse answer, as an OpenAI answer.

        Raises:
            Untranslatable: it is not one.
        """
        import httpx

        try:
            made = self._config.transform_response(
                model="",
                raw_response=httpx.Response(200, content=body),
                model_response=self._made(),
                logging_obj=None,
                request_data={},
                messages=[],
                optional_params={},
                litellm_params={},
                encoding=None,
                json_mode=json_tool,
            )
            answer: Mapping[str, object] = made.model_dump(exclude_none=True, warnings=False)
        except Exception:  # noqa: BLE001  as above
            raise Untranslatable from None
        return answer

    def chunks(self, json_tool: bool) -> ConverseChunks:
        """A fresh reader of one event stream."""
        return ConverseChunks(self._stream(model="", json_mode=json_tool))


class ConverseChunks:
    """litellm's state over the events of one stream."""

    def __init__(self, decoder: object) -> None:
        self._parse = decoder.converse_chunk_parser  # type: ignore[attr-defined]

    def delta(self, event: Mapping[str, object]) -> tuple[Mapping[str, object], str | None]:
        """What one event adds to the message, and the reason to stop if it tells one.

        Raises:
            Untranslatable: the event is not one of Converse's.
        """
        try:
            choice = self._parse(dict(event)).choices[0]
            delta: Mapping[str, object] = choice.delta.model_dump(exclude_none=True, warnings=False)
        except Exception:  # noqa: BLE001  its text holds the event
            raise Untranslatable from None
        return delta, choice.finish_reason or None
