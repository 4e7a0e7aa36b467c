"""LiteLLM configurations as people write them, and CloudTrail records as AWS documents them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from router.assess.litellm import LiteLLM, read

PROXY = """\
model_list:
  - model_name: claude
    litellm_params:
      model: bedrock/eu.anthropic.claude-sonnet-4-6
      aws_region_name: eu-central-1
  - model_name: claude
    litellm_params:
      model: bedrock/converse/global.anthropic.claude-sonnet-4-6
      aws_region_name: eu-central-1
  - model_name: nova
    litellm_params: &nova
      model: bedrock/eu.amazon.nova-lite-v1:0
      aws_region_name: os.environ/BEDROCK_REGION
  - model_name: gpt
    litellm_params:
      model: azure/gpt-4o
      api_base: https://acme.openai.azure.com
      api_key: os.environ/AZURE_API_KEY
  - model_name: mistral
    litellm_params:
      model: mistral/mistral-large-latest
      api_base: https://api.eu.mistral.ai/v1
router_settings:
  fallbacks:
    - mistral: [gpt, claude]
    - {nova: [mistral]}
  default_fallbacks: [mistral]
litellm_settings:
  context_window_fallbacks: [{mistral: [long]}]
  success_callback: [langfuse]
"""


def proxy(tmp_path: Path, text: str, environment: Mapping[str, str] | None = None) -> LiteLLM:
    """The configuration in `text`, read from a file."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return read(path, environment or {})


def deployment(tmp_path: Path, params: str, model_info: str = "{}") -> LiteLLM:
    """A configuration of one deployment, its `litellm_params` as flow YAML."""
    entry = f"  - {{model_name: m, litellm_params: {params}, model_info: {model_info}}}\n"
    return proxy(tmp_path, f"model_list:\n{entry}")


def call(number: int, **more: object) -> dict[str, object]:
    """An `AwsApiCall` record of a Converse call in eu-west-1 through the eu. profile."""
    return {
        "eventVersion": "1.11",
        "eventTime": "2026-09-01T12:00:00Z",
        "eventSource": "bedrock.amazonaws.com",
        "eventName": "Converse",
        "awsRegion": "eu-west-1",
        "requestID": f"request-{number}",
        "eventID": f"event-{number}",
        "eventType": "AwsApiCall",
        "requestParameters": {"modelId": "eu.anthropic.claude-sonnet-4-6"},
        "additionalEventData": {"inferenceRegion": "eu-north-1"},
        **more,
    }


def stream(number: int, region: str) -> list[dict[str, object]]:
    """The two records of a streaming call that ran in `region`."""
    first = call(number, eventName="ConverseStream")
    del first["additionalEventData"]
    second: dict[str, object] = {
        "eventVersion": "1.11",
        "eventSource": "bedrock.amazonaws.com",
        "eventName": "ConverseStream",
        "awsRegion": "eu-west-1",
        "eventID": f"event-{number}-second",
        "eventType": "AwsServiceEvent",
        "serviceEventDetails": {
            "parentRequestId": f"request-{number}",
            "AdditionalEventData": {"additionalEntries": {"inferenceRegion": region}},
        },
    }
    return [first, second]


def told(rows: Iterable[object]) -> list[str]:
    """Rows as text, sorted, to compare."""
    return sorted(map(str, rows))
