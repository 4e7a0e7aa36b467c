"""Providers load by kind, and slow libraries only with theirs."""

import subprocess
import sys

import pytest

from router.providers.registry import PROVIDERS, load


@pytest.mark.parametrize("kind", sorted(PROVIDERS))
def test_each_kind_loads_and_serves_it(kind: str) -> None:
    provider = load(kind)
    assert kind in provider.kinds
    assert provider.surfaces
    assert provider.place_parameters


def test_an_unknown_kind() -> None:
    with pytest.raises(KeyError):
        load("carrier-pigeon")


def test_slow_libraries_stay_out() -> None:
    program = (
        "import sys; from router.providers.registry import load; load('vllm'); load('openai');"
        "print([m for m in ('litellm', 'botocore', 'boto3', 'httpx') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.strip() == "[]"
