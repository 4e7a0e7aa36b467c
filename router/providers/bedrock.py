"""Amazon Bedrock by Converse and ConverseStream.

The place of a call is made of three things that only the endpoint says: the host's region, the
signature's region and the model or profile in the path. A client's parameters that would touch
them, or choose a guardrail or an account, are refused.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from regions.model import Endpoint
from router.answers.eventstream import MEDIA_TYPE
from router.errors import RequestError
from router.providers.aws import base_url, label, load_signing, region_of, signed
from router.providers.base import Ask, Decoder, Failure, Misconfigured, Target, refuse_places
from router.providers.bedrock_failures import bedrock_failure
from router.providers.bodies import anew, refuse_duplicates
from router.providers.converse import Converse, Translated, Untranslatable
from router.providers.converse_answer import EventAnswer, WholeAnswer, not_a_stream
from router.providers.converse_ask import SPARED, Wanted, lost, refused, unsupported, wanted
from router.providers.converse_schemas import restore
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
_SPEAKING = ("foundation-model", "inference-profile")
_GUARDRAIL = re.compile(
    r"(?P<id>[a-z0-9]+|arn:aws[a-z-]*:bedrock:(?P<region>[a-z0-9-]+):\d{12}:guardrail/[a-z0-9]+)"
    r":(?P<version>\d{1,8}|DRAFT)"
)

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

    An opaque ARN hides its model: the endpoint's setting `resolves_to` names it, else the ARN
    itself stands for a model of which nothing is known.
    """
    arn = _ARN.fullmatch(endpoint.model)
    if arn is None:
        return _bare(endpoint.model)
    if arn["type"] in _SPEAKING:
        return _bare(arn["id"])
    for behind in _ARN.finditer(endpoint.settings.get("resolves_to", "")):
        if behind["type"] in _SPEAKING:
            return _bare(behind["id"])
    return endpoint.model


def _bare(model: str) -> str:
    geography, _, rest = model.partition(".")
    return rest if geography in _GEOGRAPHIES and "." in rest else model


class Bedrock:
    """Bedrock in one source region: in-region models, profiles, routers and provisioned models."""

    kinds = frozenset({"bedrock"})
    surfaces = frozenset({"chat.completions"})
    place_parameters = _PLACES
    refuses_names_only = False

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
        _guardrail(endpoint)
        for name in sorted(set(endpoint.left_out) - SPARED):
            raise Misconfigured(
                f"`{name}` can't be left out: an answer without it is another one; "
                f"`leave_out` takes {', '.join(sorted(SPARED))}"
            )
        load_signing()

    def encode(self, ask: Ask, endpoint: Endpoint, target: Target, now: float) -> OutboundRequest:
        """See `Provider`: translated, signed for the endpoint's region at `now`."""
        self.check(endpoint)
        refuse_duplicates(ask.raw)
        made = self._translate(ask, endpoint)
        body = {**made.body, **_guardrail(endpoint)}
        if ask.record:
            body["requestMetadata"] = {"domicile-record": ask.record}
        region = region_of(endpoint.source)
        base = base_url(SERVICE, region, target.url)
        operation = "converse-stream" if ask.stream else "converse"
        path = f"{urlsplit(base).path}/model/{label(endpoint.model)}/{operation}"
        origin = Origin.parse(base, target.tls)
        data = anew(body)
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
        out = _PLACES | frozenset(endpoint.left_out)
        body = {name: value for name, value in ask.body.items() if name not in out}
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
        restore(asked.parameters.get("tools"), made.body)
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


def _guardrail(endpoint: Endpoint) -> dict[str, object]:
    """The endpoint's guardrail, over all of the conversation: its setting is `id:version`."""
    named = endpoint.settings.get("guardrail")
    if named is None:
        return {}
    found = _GUARDRAIL.fullmatch(named)
    if found is None:
        raise Misconfigured(f"guardrail `{named}` is not an id or arn and a version, as `abc1:2`")
    if found["region"] not in (None, region_of(endpoint.source)):
        raise Misconfigured(f"guardrail `{named}` is of another region than the endpoint's source")
    return {
        "guardrailConfig": {
            "guardrailIdentifier": found["id"],
            "guardrailVersion": found["version"],
        }
    }
