"""The inference routes as the OpenAPI document tells them.

They are answered in front of FastAPI, which therefore can't describe them itself. What stands
here is what this router relies on; every other field of a body is the endpoint's to judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from policies.model import Priority
from router import grade
from router.capacity import priority
from router.errors import ANSWERS
from router.inbound import deadlines
from router.surfaces import chat

Described = dict[str, object]

SECURITY: Mapping[str, object] = MappingProxyType(
    {"key": {"type": "http", "scheme": "bearer", "description": "an API key of this router"}}
)
"""How a client says who it is."""

_RECEIPT: Mapping[str, str] = MappingProxyType(
    {
        "x-domicile-record": "the region log's entry: log id, index and leaf hash",
        "x-domicile-head": "the log's signed tree head when the entry became durable",
        "x-domicile-region": "the region it ran in, where that is one and certain",
        "x-domicile-footprint": "where it may have run, where the provider doesn't tell",
        "x-domicile-endpoint": "the endpoint that answered",
        "x-domicile-model": "the model that ran",
        "x-domicile-tier": "the tier that ran",
        "x-domicile-left-out": "what the request had and the endpoint is never sent: `leave_out`",
        "x-domicile-attempts": "endpoints asked until one answered",
        "x-domicile-policy": "the digest of the policy that decided",
        "x-request-id": "this router's id of the request",
    }
)


def paths() -> dict[str, Described]:
    """OpenAPI path items of the inference routes, by path."""
    return {chat.PATH: {"post": _chat()}}


def _chat() -> Described:
    return {
        "tags": ["inference"],
        "summary": "Chat Completions",
        "description": "OpenAI's chat completions, plain or as a stream of events. Attributes "
        "that the operator declared are sent as `x-domicile-attr-NAME: v1,v2`.",
        "operationId": "chat_completions",
        "security": [{"key": []}],
        "parameters": [_tier(), _class(), _deadline()],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _request()}},
        },
        "responses": {"200": _answer(), **_errors()},
    }


def _tier() -> Described:
    return {
        "name": grade.HEADER.decode(),
        "in": "header",
        "required": False,
        "description": "the lowest tier of the model that may answer",
        "schema": {"type": "string", "enum": ["small", "medium", "large"]},
    }


def _deadline() -> Described:
    return {
        "name": deadlines.HEADER.decode(),
        "in": "header",
        "required": False,
        "description": "the longest the request may take in all, as `30s`; never longer than the "
        "router's own limit",
        "schema": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? *(ms|s|m|h)$"},
    }


def _class() -> Described:
    return {
        "name": priority.HEADER.decode(),
        "in": "header",
        "required": False,
        "description": "the class of the request, where the router has classes: at most what the "
        "key may have, which is what it gets when nothing is said",
        "schema": {"type": "string", "enum": [one.label for one in Priority]},
    }


def _request() -> Described:
    message = {
        "type": "object",
        "required": ["role"],
        "properties": {"role": {"type": "string"}, "content": {}},
        "additionalProperties": True,
    }
    whole = {"type": ["integer", "null"], "minimum": 1}
    return {
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": {"type": "string", "minLength": 1, "maxLength": chat.MAX_MODEL},
            "messages": {"type": "array", "minItems": 1, "items": message},
            "stream": {"type": ["boolean", "null"]},
            "max_tokens": whole,
            "max_completion_tokens": whole,
        },
        "additionalProperties": True,
    }


def _answer() -> Described:
    text = {"schema": {"type": "string"}}
    return {
        "description": "the answer, its `model` being the name asked for",
        "headers": {name: {"description": what, **text} for name, what in sorted(_RECEIPT.items())},
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {"schema": {"type": "string"}},
        },
    }


def _errors() -> dict[str, Described]:
    """One answer for each status, with every code it may carry."""
    by_status: dict[int, list[str]] = {}
    for code, answer in ANSWERS.items():
        by_status.setdefault(answer.status, []).append(code)
    return {str(status): _error(sorted(codes)) for status, codes in sorted(by_status.items())}


def _error(codes: list[str]) -> Described:
    text = {"type": "string"}
    error = {
        "type": "object",
        "required": ["message", "type", "param", "code"],
        "properties": {
            "message": text,
            "type": text,
            "param": {"type": ["string", "null"]},
            "code": {"type": "string", "enum": codes},
            "reasons": {"type": "array", "items": {"type": "object"}},
            "record": text,
        },
    }
    schema = {"type": "object", "required": ["error"], "properties": {"error": error}}
    return {
        "description": ", ".join(codes),
        "content": {"application/json": {"schema": schema}},
    }
