"""Environment variables and `~/.aws` files never choose where a call goes, or as whom."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router.simulator.bedrock import TEST_KEY
from tests.chaos.world import SONNET_EU
from tests.spike.hosts import EU, REGIONS
from tests.spike.world import EVIL, WATCH, Ends, ask, ends, inside, path

PLAIN: Mapping[str, object] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
ROOT = Path(__file__).resolve().parents[2]
TRAP = "http://127.0.0.1:{port}"
VALUES: Mapping[str, tuple[str, ...]] = {
    "url": (TRAP, f"http://{EVIL}:9", f"https://bedrock-runtime.us-west-2.{EVIL}"),
    "region": ("us-west-2", "ap-northeast-1", "eu-west-1", "nowhere"),
    "key": ("AKIDEVIL000000000001", "sk-evil"),
    "flag": ("true", "1", "false"),
    "name": ("evil", "default"),
    "file": ("{home}/evil", "/dev/null"),
}
NAMES: Mapping[str, tuple[str, ...]] = {
    "url": (
        "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        "AWS_ENDPOINT_URL_STS", "AWS_BEDROCK_RUNTIME_ENDPOINT", "AWS_STS_ENDPOINT",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
        "OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_PROXY", "LITELLM_PROXY_API_BASE",
        "LITELLM_API_BASE", "HOSTED_VLLM_API_BASE", "VLLM_API_BASE", "ANTHROPIC_BASE_URL",
        "ANTHROPIC_API_BASE", "BEDROCK_API_BASE", "AZURE_API_BASE", "OTEL_EXPORTER_OTLP_ENDPOINT",
        "LANGFUSE_HOST", "HF_ENDPOINT", "LITELLM_MODEL_COST_MAP_URL",
    ),
    "region": (
        "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME", "BEDROCK_AWS_REGION_NAME",
        "AWS_STS_REGIONAL_ENDPOINTS", "VERTEXAI_LOCATION", "OPENAI_ORGANIZATION",
    ),
    "key": (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK", "OPENAI_API_KEY", "LITELLM_API_KEY", "ANTHROPIC_API_KEY",
        "LITELLM_PROXY_API_KEY", "HOSTED_VLLM_API_KEY",
    ),
    "flag": (
        "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "USE_LITELLM_PROXY", "LITELLM_LOG",
        "AIOHTTP_TRUST_ENV", "NO_PROXY",
    ),
    "name": ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME"),
    "file": (
        "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CA_BUNDLE", "SSLKEYLOGFILE", "NETRC", "BOTO_CONFIG", "LITELLM_CONFIG_PATH",
    ),
}  # fmt: skip
VARIABLES = st.dictionaries(
    st.sampled_from(sorted((kind, name) for kind, names in NAMES.items() for name in names)),
    st.integers(0, 3),
    max_size=12,
)
SETTINGS = (
    "region = us-west-2", "endpoint_url = {trap}", "use_fips_endpoint = true",
    "services = evil", "role_arn = arn:aws:iam::1:role/evil", "source_profile = evil",
    "credential_process = /usr/bin/touch {home}/ran", "web_identity_token_file = {home}/evil",
    "sso_start_url = {trap}", "proxy = {trap}", "aws_access_key_id = AKIDEVIL000000000001",
    "aws_secret_access_key = evil", "ignore_configured_endpoint_urls = false",
    "defaults_mode = auto", "sts_regional_endpoints = legacy",
)  # fmt: skip
SERVICES = "[services evil]\nbedrock-runtime =\n  endpoint_url = {trap}\n[default]"
SECTIONS = ("[default]", "[profile evil]", "[evil]", SERVICES)
SECTION = st.tuples(st.sampled_from(SECTIONS), st.lists(st.sampled_from(SETTINGS), max_size=4))
FILE = st.lists(SECTION, max_size=3)
Given = tuple[Mapping[tuple[str, str], int], object, object]


def environment(given_: Mapping[tuple[str, str], int], home: Path, trap: int) -> dict[str, str]:
    """The variables drawn, as text."""
    url = TRAP.format(port=trap)
    made = {
        name: VALUES[kind][number % len(VALUES[kind])].format(port=trap, home=home, trap=url)
        for (kind, name), number in given_.items()
    }
    return {**made, "HOME": str(home)}


def text(drawn: object, home: Path, trap: int) -> str:
    """A configuration file of AWS's kind."""
    assert isinstance(drawn, list)
    lines = [line for head, body in drawn for line in (head, *body)]
    return "\n".join(lines).format(home=home, trap=TRAP.format(port=trap)) + "\n"


def prepared(world: Ends, drawn: Given) -> dict[str, str]:
    """A home with `~/.aws`, and the environment."""
    home = world.folder / "home"
    (home / ".aws").mkdir(parents=True, exist_ok=True)
    for name, content in (("config", drawn[1]), ("credentials", drawn[2])):
        written = text(content, home, world.trap.port)
        (home / ".aws" / name).write_text(written)
        (home / "evil").write_text(written)
    (home / ".netrc").write_text(f"machine {EU} login evil password evil\n")
    return environment(drawn[0], home, world.trap.port)


async def through(folder: Path, drawn: Given, model: str, stream: bool) -> None:
    async with ends(folder) as world:
        hostile = prepared(world, drawn)
        with patch.dict(os.environ, {**hostile, "SSL_CERT_FILE": str(folder / "papers.pem")}):
            async with path(world) as way:
                asked = await way.ask("clinic", {**PLAIN, "model": model, "stream": stream})
        assert (asked.code, list(inside(way, asked))) == ("ok", []), (
            hostile,
            way.router.live.notes,
        )
        assert len(asked.calls) + len(asked.selves) == 1
        assert not (folder / "home" / "ran").exists()


@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=60)
@given(
    drawn=st.tuples(VARIABLES, FILE, FILE),
    model=st.sampled_from(["sonnet", "sonnet", "own"]),
    stream=st.booleans(),
)
def test_no_variable_and_no_file_moves_a_call(
    tmp_path_factory: object, drawn: Given, model: str, stream: bool
) -> None:
    WATCH.install()
    folder: Path = tmp_path_factory.mktemp("environment")  # type: ignore[attr-defined]
    asyncio.run(through(folder, drawn, model, stream))


EVERYTHING: Given = (
    {(kind, name): 0 for kind, names in NAMES.items() for name in names},
    [("[default]", list(SETTINGS)), ("[profile evil]", list(SETTINGS)), (SERVICES, [])],
    [("[default]", list(SETTINGS[-4:])), ("[evil]", list(SETTINGS[-4:]))],
)
SECOND: Given = (dict.fromkeys(EVERYTHING[0], 1), EVERYTHING[1], EVERYTHING[2])


async def served(folder: Path, drawn: Given) -> tuple[list[tuple[int, bytes]], list[str], Ends]:
    """Everything hostile at once from the process's first moment, and what the process did."""
    async with ends(folder) as world:
        hostile = prepared(world, drawn)
        port, admin = _free(), _free()
        main = world.main.read_text().replace(
            'region: "self:fra1"',
            f'region: "self:fra1", listen: "127.0.0.1:{port}", admin: "127.0.0.1:{admin}"',
        )
        (folder / "served.yaml").write_text(main)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.spike.watched", str(folder / "served.yaml"),
            str(world.bedrock.port), str(world.clock.start), str(world.clock.began),
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
            env={**hostile, "SSL_CERT_FILE": str(folder / "papers.pem"),
                 "PATH": os.environ["PATH"]},
        )  # fmt: skip
        assert process.stdout is not None
        heard = asyncio.create_task(process.stdout.read())
        try:
            await _up(port, process)
            answers = [
                await ask(port, "clinic", {**PLAIN, "model": model, "stream": stream})
                for model in ("sonnet", "own")
                for stream in (False, True)
            ]
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), 30)
        return answers, (await heard).decode().splitlines(), world


async def _up(port: int, process: asyncio.subprocess.Process) -> None:
    for _ in range(3000):
        assert process.returncode is None
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
            continue
        writer.close()
        return
    raise AssertionError("the router did not come up")


def _free() -> int:
    import socket

    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


def observed(world: Ends, said: list[str]) -> set[str]:
    """What a process did beyond connecting to its two ends."""
    allowed = {f"address {host} {port}" for host, port in world.allowed}
    assert len(allowed & set(said)) >= 2, "the watch heard neither Bedrock nor the own endpoint"
    return set(said) - allowed


async def _hostile(folder: Path, drawn: Given) -> None:
    answers, said, world = await served(folder, drawn)
    assert observed(world, said) == set()
    assert [status for status, _ in answers] == [200] * 4, answers
    assert world.trap.caught == 0
    assert not (folder / "home" / "ran").exists()
    calls = [call for call in world.bedrock.calls if call.method == "POST"]
    assert [call.host for call in calls] == [EU] * 2
    for call in calls:
        assert (call.signed_region, call.key_id) == ("eu-central-1", TEST_KEY)
        assert (call.credential, call.target) == ("sigv4", SONNET_EU)
    for call in world.bedrock.calls:  # questions about profiles too are asked at their regions
        assert call.signed_region == call.region in REGIONS
    assert {one.region for one in world.fleet if one.seen} == {"self:fra1"}


def test_a_whole_process_in_a_hostile_environment(tmp_path: Path) -> None:
    """From the first import on: litellm and botocore look at variables then."""
    asyncio.run(_hostile(tmp_path, EVERYTHING))
