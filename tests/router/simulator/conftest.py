from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
import httpx
import pytest
from botocore.config import Config

from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld, Guardrail, Profile
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import Replica, ReplicaSpec
from tests.router.simulator.chatting import SPEC
from tests.router.simulator.conversing import ARN, EU, SIX, SONNET, Aws

WORLD = BedrockWorld.of(
    {
        EU: {"eu-central-1": SIX, "eu-west-2": (*SIX, "eu-west-2"), "eu-west-1": SIX},
        f"global.{SONNET}": {"eu-central-1": ("us-east-1", "ap-northeast-1", "sa-east-1")},
    },
    {"eu-central-1": [SONNET + "-v1:0", "amazon.nova-lite-v1:0", "openai.gpt-oss-120b-1:0"]},
    more=[Profile("abc123def456", "eu-west-1", SONNET, SIX, arn=ARN)],
    guardrails=[
        Guardrail("gr1234567890", "eu-central-1", "2", ("forbidden",), "eu.guardrail.v1:0")
    ],
)
LOCAL = Config(retries={"max_attempts": 0}, connect_timeout=3, read_timeout=3)


@pytest.fixture
async def stub() -> AsyncIterator[BedrockStub]:
    spec = BedrockSpec(
        WORLD, bearers=frozenset({"good"}), denied=frozenset({"eu-south-1"}), speed=200.0, seed=7
    )
    async with BedrockStub(spec) as running:
        yield running


@pytest.fixture
def aws() -> Iterator[Aws]:
    """Makes real boto3 clients with their real hostnames, connected to a stub; closes them."""
    made: list[Any] = []

    def make(stub: BedrockStub, service: str, region: str, key: str = TEST_KEY) -> Any:
        client = boto3.client(
            service, region_name=region, aws_access_key_id=key,
            aws_secret_access_key=TEST_SECRET.secret_key, config=LOCAL,
        )  # fmt: skip

        def divert(request: Any, **_: object) -> None:
            parts = urlsplit(request.url)
            request.headers["Host"] = parts.netloc
            request.url = stub.url + parts.path + (f"?{parts.query}" if parts.query else "")

        client.meta.events.register(f"before-send.{service}", divert)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
async def fleet() -> AsyncIterator[SimulatedFleet]:
    async with SimulatedFleet({"self:fra1": SPEC, "self:iad1": SPEC}, control=True) as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
        yield client


@pytest.fixture
async def replica() -> AsyncIterator[Replica]:
    spec = ReplicaSpec(speed=400.0, created=1)
    async with SimulatedFleet({"self:fra1": spec}) as fleet:
        yield fleet["fra1"]
