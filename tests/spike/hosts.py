"""Bedrock's public host names, where the stub stands for them."""

from tests.chaos.world import EU_ROUTES, US_ROUTES

REGIONS = tuple(sorted({*EU_ROUTES, *US_ROUTES, "ap-northeast-1"}))
# Where prompts go, and where the router asks about profiles.
RUNTIME = tuple(f"bedrock-runtime.{region}.amazonaws.com" for region in REGIONS)
HOSTS = (*RUNTIME, *(f"bedrock.{region}.amazonaws.com" for region in REGIONS))
EU = "bedrock-runtime.eu-central-1.amazonaws.com"
