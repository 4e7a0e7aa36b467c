"""What Bedrock's errors mean, over HTTP and inside a stream."""

import json

import pytest
from botocore.loaders import Loader

from router.providers.base import Kind
from router.providers.bedrock_failures import NEEDS_PROFILE, bedrock_error, bedrock_failure


def over_http(status: int, code: str, message: str = "") -> Kind:
    headers = ((b"x-amzn-errortype", code.encode()),)
    body = json.dumps({"message": message}).encode()
    return bedrock_failure(status, headers, body, 0).kind


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (429, "ThrottlingException", Kind.LOAD),
        (429, "ModelNotReadyException", Kind.LOAD),
        (400, "ServiceQuotaExceededException", Kind.LOAD),
        (403, "AccessDeniedException", Kind.AUTH),
        (403, "ExpiredTokenException", Kind.AUTH),
        (403, "UnrecognizedClientException", Kind.AUTH),
        (404, "ResourceNotFoundException", Kind.MISSING),
        (408, "ModelTimeoutException", Kind.ILL),
        (424, "ModelErrorException", Kind.ILL),
        (500, "InternalServerException", Kind.ILL),
        (503, "ServiceUnavailableException", Kind.ILL),
        (400, "ValidationException", Kind.CLIENT),
        # Some of AWS's services give 400 to all exceptions.
        (400, "ThrottlingException", Kind.LOAD),
        (400, "ExpiredTokenException", Kind.AUTH),
        (400, "ServiceUnavailable", Kind.ILL),
        (502, "", Kind.ILL),
        (522, "", Kind.ILL),
        (529, "", Kind.LOAD),
    ],
)
def test_codes(status: int, code: str, kind: Kind) -> None:
    assert over_http(status, code) is kind


@pytest.mark.parametrize(
    "told",
    [
        "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/",
        "com.amazon.bedrock#ThrottlingException",
        "throttlingException",
    ],
)
def test_forms_of_a_code(told: str) -> None:
    failure = bedrock_failure(429, ((b"x-amzn-errortype", told.encode()),), b"", 0)
    assert failure.provider_code == "ThrottlingException"
    body = json.dumps({"__type": told}).encode()
    assert bedrock_failure(429, (), body, 0).provider_code == "ThrottlingException"


def test_a_plain_id_that_needs_a_profile() -> None:
    message = (
        "Invocation of model ID anthropic.claude-sonnet-4-6 with on-demand throughput isn\u2019t "
        "supported. Retry your request with the ID or ARN of an inference profile."
    )
    body = json.dumps({"message": message}).encode()
    failure = bedrock_failure(400, ((b"x-amzn-errortype", b"ValidationException"),), body, 0)
    assert (failure.kind, failure.message) == (Kind.MISSING, NEEDS_PROFILE)
    assert not failure.clients
    assert over_http(400, "ValidationException", message.replace("\u2019", "'")) is Kind.MISSING


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Input is too long for requested model.", Kind.CONTEXT_LENGTH),
        ("prompt is too long: 210000 tokens > 200000 maximum", Kind.CONTEXT_LENGTH),
        ("The provided model identifier is invalid.", Kind.MISSING),
        ("This model version has reached the end of its life.", Kind.MISSING),
        ("Operation not allowed", Kind.MISSING),
        ("Your account is not authorized to invoke this API operation.", Kind.MISSING),
        ("Access to this model is not available for channel program accounts.", Kind.MISSING),
        ("Your request was blocked by our content filters", Kind.REFUSED),
        ("Malformed input request: #: extraneous key", Kind.CLIENT),
    ],
)
def test_validation_says_more(message: str, kind: Kind) -> None:
    assert over_http(400, "ValidationException", message) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", Kind.LOAD),
        ("modelStreamErrorException", Kind.ILL),
        ("internalServerException", Kind.ILL),
        ("serviceUnavailableException", Kind.ILL),
        ("validationException", Kind.CLIENT),
        ("somethingNew", Kind.ILL),
    ],
)
def test_frames(name: str, kind: Kind) -> None:
    failure = bedrock_error(name, b'{"message":"m"}')
    assert failure.kind is kind
    assert failure.provider_code.lower() == (name.lower() if name != "somethingNew" else "")


def test_a_service_that_is_full_is_not_ill() -> None:
    message = "Too many connections, please wait before trying again."
    assert over_http(503, "ServiceUnavailableException", message) is Kind.LOAD
    body = json.dumps({"message": message}).encode()
    assert bedrock_error("serviceUnavailableException", body).kind is Kind.LOAD


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [(429, Kind.LOAD, 429), (529, Kind.LOAD, 529), (503, Kind.ILL, 503), (500, Kind.ILL, 424),
     (400, Kind.ILL, 424), (None, Kind.ILL, 424), ("429", Kind.ILL, 424)],
)  # fmt: skip
def test_a_models_own_status_says_whether_it_ran(status: object, kind: Kind, told: int) -> None:
    """`originalStatusCode` of a model's server behind Bedrock's: a limit did no work."""
    body = json.dumps({"message": "m", "originalStatusCode": status}).encode()
    failure = bedrock_error("modelStreamErrorException", body)
    assert (failure.kind, failure.status) == (kind, told)


def test_every_exception_of_converse_is_known() -> None:
    model = Loader().load_service_model("bedrock-runtime", "service-2", "2023-09-30")
    for operation in ("Converse", "ConverseStream"):
        for error in model["operations"][operation]["errors"]:
            assert bedrock_error(error["shape"], b"").provider_code == error["shape"]


def test_no_word_comes_along(canary: str) -> None:
    body = json.dumps({"message": canary, "code": canary, canary: canary}).encode()
    for code in (canary, "ValidationException", f"ValidationException:{canary}"):
        headers = ((b"x-amzn-errortype", code.encode()), (b"retry-after", canary.encode()))
        assert canary not in repr(bedrock_failure(400, headers, body, 0))
    assert canary not in repr(bedrock_error(canary, body))


def test_the_wait_is_told() -> None:
    assert bedrock_failure(429, ((b"retry-after", b"3"),), b"", 0).retry_after == 3


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("`temperature` and `top_p` cannot both be specified for this model.", "temperature"),
        ("`max_tokens` must be greater than `thinking.budget_tokens`. PROMPT", "max_tokens"),
        ("The text field in the ContentBlock object at messages.3.content.0 is blank.", "messages"),
        ("tools.0.custom.input_schema: PROMPT", "tools"),
        ("This model does not support assistant message prefill.", None),
        ("a conversation must alternate between `user` and `assistant`", None),
    ],
)
def test_the_parameter_is_named(words: str, named: str | None) -> None:
    """A model's own rules, as of BerriAI/litellm#39627: which was broken stands in words alone."""
    body = json.dumps({"message": f"The model returned the following errors: {words}"}).encode()
    failure = bedrock_failure(400, ((b"x-amzn-errortype", b"ValidationException"),), body, 0)
    assert (failure.kind, failure.param) == (Kind.CLIENT, named)
    assert (f"`{named}`" in failure.message) is (named is not None)
    assert "PROMPT" not in failure.message
