"""Amazon Bedrock by Converse and ConverseStream.

The place of a call is made of three things that only the endpoint says: the host's region, the
signature's region and the model or profile in the path. A client's parameters that would touch
them, or choose a guardrail or an account, are refused.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import orjson

from regions.model import Endpoint
from router.errors import RequestError
from router.eventstream import MEDIA_TYPE
from router.providers.aws import base_url, label, region_of, signed
from router.providers.base import Ask, Decoder, Failure, Misconfigured, Target, refuse_places
from router.providers.bedrock_failures import bedrock_failure
from router.providers.bodies import refuse_duplicates
from router.providers.converse import Converse, Translated, Untranslatable
from router.providers.converse_answer import EventAnswer, WholeAnswer, not_a_stream
from router.providers.converse_ask import Wanted, lost, refused, unsupported, wanted
from router.providers.failures import bad_answer, call_id
from router.transport.messages import Headers, Origin, OutboundRequest, header

SERVICE = "bedrock-runtime"
_SIGNED_AS = "bedrock"
_GEOGRAPHIES = frozenset(
    {"us", "eu", "apac", "jp", "au", "in", "ca", "uk", "us-gov", "global"}
)  # fmt: skip
_ARN = re.compile(
    r"arn:aws[a-z-]*:bedrock:(?P<region>[a-z0-9-]*):\d{0,12}:"
    r"(?P<type>[a-z-]+)/(?P<id>[A-Za-z0-9._:/-]+)"
)
_ID = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+[A-Za-z0-9.:_-]*")
_GUARDRAIL_TRACE = ("enabled", "disabled", "enabled_full")
_STREAM_MODES = ("sync", "async")

# Whatever chooses region, host, account, guardrail or profile, in the spellings of Converse, of
# boto3 and of the gateways that clients move here from.
_PLACES = frozenset(
    {
        "aws_region_name", "aws_region", "region", "region_name", "aws_bedrock_runtime_endpoint",
        "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_session_name",
        "aws_profile_name", "aws_role_name", "aws_role_arn", "aws_web_identity_token",
        "aws_sts_endpoint", "aws_external_id", "aws_bedrock_client", "api_base", "base_url",
        "api_key", "api_version", "endpoint_url", "modelId", "model_id", "base_model",
        "guardrailConfig", "guardrail_config", "guardrails", "guardrailIdentifier",
        "guardrailVersion", "performanceConfig", "requestMetadata", "fallbacks", "models",
        "provider", "route", "extra_headers", "extra_body", "extra_query", "custom_llm_provider",
        "project", "cache_control_injection_points", "web_search_options",
        "additionalModelRequestFields",
    }
)  # fmt: skip


def converse_model(endpoint: Endpoint) -> str:
    """The model's own id, without geography, for what it can do; never for where it is called.

    An opaque ARN hides its model: the endpoint's setting `base_model` names it, else the ARN
    itself stands for a model of which nothing is known.
    """
    if named := endpoint.settings.get("base_model"):
        return named
    model = endpoint.model
    if (arn := _ARN.fullmatch(model)) is not None:
        if arn["type"] not in ("foundation-model", "inference-profile"):
            return model
        model = arn["id"]
    geography, _, rest = model.partition(".")
    return rest if geography in _GEOGRAPHIES and "." in rest else model


class Bedrock:
    """Bedrock in one source region: in-region models, profiles, routers and provisioned models."""

    kinds = frozenset({"bedrock"})
    surfaces = frozenset({"chat.completions"})
    place_parameters = _PLACES

    def __init__(self) -> None:
        self._converse = Converse()

    def check(self, endpoint: Endpoint) -> None:
        """See `Provider`: region, model or ARN, URLs and guardrail fit together."""
        region = region_of(endpoint.source)
        arn = _ARN.fullmatch(endpoint.model)
        if arn is None and not _ID.fullmatch(endpoint.model):
            raise Misconfigured(f"`{endpoint.model}` is no model id, profile id or arn of bedrock")
        if arn is not None and arn["region"] != region:
            raise Misconfigured(
                f"`{endpoint.model}` is of region `{arn['region']}` but the endpoint's source is "
                f"`{region}`; they must be the same"
            )
        for url in endpoint.urls or ("",):
            base_url(SERVICE, region, url)
        _guardrail(endpoint, stream=True)
        guardrail = endpoint.settings.get("guardrail", "")
        if guardrail.startswith("arn:") and guardrail.split(":")[3] != region:
            raise Misconfigured(f"guardrail `{guardrail}` is not of region `{region}`")

    def encode(self, ask: Ask, endpoint: Endpoint, target: Target, now: float) -> OutboundRequest:
        """See `Provider`: translated, signed for the endpoint's region at `now`."""
        self.check(endpoint)
        refuse_duplicates(ask.raw)
        made = self._translate(ask, endpoint)
        body = {**made.body, **_guardrail(endpoint, stream=ask.stream)}
        if ask.record:
            body["requestMetadata"] = {"domicile-record": ask.record}
        region = region_of(endpoint.source)
        base = base_url(SERVICE, region, target.url)
        operation = "converse-stream" if ask.stream else "converse"
        path = f"{urlsplit(base).path}/model/{label(endpoint.model)}/{operation}"
        origin = Origin.parse(base, target.tls)
        data = orjson.dumps(body)
        url = f"{origin}{path}"
        headers = signed(
            target.credential, _SIGNED_AS, region, "POST", url, _headers(ask.stream), data, now
        )
        return OutboundRequest(origin, "POST", path, headers, data)

    def refusal(self, ask: Ask, endpoint: Endpoint) -> RequestError | None:
        """See `Provider`."""
        try:
            self._wanted(ask, endpoint)
        except RequestError as error:
            return error
        return None

    def _wanted(self, ask: Ask, endpoint: Endpoint) -> Wanted:
        refuse_places(_PLACES, ask.body, endpoint)
        if ask.surface not in self.surfaces:
            raise RequestError("capability_not_available", f"`{ask.surface}` can't be asked here")
        body = {name: value for name, value in ask.body.items() if name not in _PLACES}
        asked = wanted(body, endpoint.allow_parameters)
        supported = self._converse.supported(converse_model(endpoint))
        if (refusal := unsupported(asked, supported)) is not None:
            raise refusal
        return asked

    def _translate(self, ask: Ask, endpoint: Endpoint) -> Translated:
        asked = self._wanted(ask, endpoint)
        model = converse_model(endpoint)
        try:
            made = self._converse.request(model, asked.messages, asked.parameters)
        except Untranslatable:
            raise self._culprit(model, asked) from None
        if (refusal := lost(asked, made)) is not None:
            raise refusal
        if asked.extra:
            fields = made.body.get("additionalModelRequestFields")
            known = fields if isinstance(fields, dict) else {}
            made.body["additionalModelRequestFields"] = {**asked.extra, **known}
        return made

    def _culprit(self, model: str, asked: Wanted) -> RequestError:
        """Which parameter can't be translated: the one without which the rest can."""
        for name in asked.parameters:
            others = {k: v for k, v in asked.parameters.items() if k != name}
            try:
                self._converse.request(model, asked.messages, others)
            except Untranslatable:
                continue
            return refused(name, "is not taken by this model as it was sent; leave it out")
        return RequestError(
            "parameter_not_allowed",
            "the messages can't be expressed for this model's provider; send plain text",
            param="messages",
        )

    def decoder(self, ask: Ask, endpoint: Endpoint, headers: Headers) -> Decoder | Failure:
        """See `Provider`. Only an event stream reaches the event stream's decoder."""
        kind = (header(headers, b"content-type") or b"").split(b";")[0].strip().lower()
        json_tool = self._json_tool(ask, endpoint)
        if not ask.stream:
            if kind != b"application/json":
                return bad_answer(200, "it is not json")
            return WholeAnswer(ask, self._converse, json_tool)
        if kind != MEDIA_TYPE:
            return not_a_stream(kind)
        return EventAnswer(ask, self._converse, json_tool)

    def _json_tool(self, ask: Ask, endpoint: Endpoint) -> bool:
        """Whether `encode` forced the tool that stands for a schema: only then translate again."""
        if not isinstance(ask.body.get("response_format"), dict):
            return False
        return self._translate(ask, endpoint).json_tool

    def failure(self, status: int, headers: Headers, body: bytes, now: float) -> Failure:
        """See `Provider`."""
        return bedrock_failure(status, headers, body, now)

    def call_id(self, headers: Headers) -> str | None:
        """See `Provider`: CloudTrail's `requestID`."""
        return call_id(headers, b"x-amzn-requestid")


def _headers(stream: bool) -> dict[str, str]:
    accept = MEDIA_TYPE.decode() if stream else "application/json"
    return {"content-type": "application/json", "accept": accept, "accept-encoding": "identity"}


def _guardrail(endpoint: Endpoint, *, stream: bool) -> dict[str, object]:
    """The endpoint's guardrail, over all of the conversation.

    Settings: `guardrail` (id or ARN), `guardrail_version`, `guardrail_trace`,
    `guardrail_stream` (`sync` or `async`).
    """
    settings = endpoint.settings
    if "guardrail" not in settings:
        return {}
    if "guardrail_version" not in settings:
        raise Misconfigured(f"endpoint `{endpoint.name}`: `guardrail` needs `guardrail_version`")
    made: dict[str, object] = {
        "guardrailIdentifier": settings["guardrail"],
        "guardrailVersion": settings["guardrail_version"],
    }
    for name, key, values, used in (
        ("guardrail_trace", "trace", _GUARDRAIL_TRACE, True),
        ("guardrail_stream", "streamProcessingMode", _STREAM_MODES, stream),
    ):
        value = settings.get(name)
        if value is not None and value not in values:
            raise Misconfigured(f"endpoint `{endpoint.name}`: `{name}` is one of {values}")
        if value is not None and used:
            made[key] = value
    return {"guardrailConfig": made}
