"""Bedrock's public host names, where the stub stands for them."""

REGIONS = ("eu-central-1", "eu-west-1", "us-east-1", "us-west-2", "ap-northeast-1")
HOSTS = tuple(f"bedrock-runtime.{region}.amazonaws.com" for region in REGIONS)
