"""Three real model servers as three regions, and a real router in front of them.

The servers start one after another, once for the whole run: two cores serve one start well and
three badly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import openai
import pytest

from tests.e2e import javascript
from tests.e2e.engines import Engine, running
from tests.e2e.parts import Missing, Parts
from tests.e2e.routers import BASELINE, Served, serving

Clients = Callable[[str], openai.OpenAI]


@pytest.fixture(scope="session")
def engines(
    real_parts: Parts, free_port: Callable[[], int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Engine]]:
    """Real weights in Germany; a small random model in France and in the United States."""
    folder = tmp_path_factory.mktemp("engines")
    models = {"fra": real_parts.smollm2, "par": real_parts.tiny, "iad": real_parts.tiny}
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                running(real_parts, f"self:{name}1", model, free_port(), folder / f"{name}.txt")
            )
            for name, model in models.items()
        }


@pytest.fixture(scope="session")
def served(
    engines: Mapping[str, Engine],
    free_port: Callable[[], int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    """`domicile serve`, in Germany."""
    urls = {name: engine.url for name, engine in engines.items()}
    folder = tmp_path_factory.mktemp("router") / "etc"
    with serving(folder, BASELINE.format(**urls), free_port(), free_port()) as router:
        yield router


@pytest.fixture(scope="session")
def client(served: Served) -> Iterator[Clients]:
    """OpenAI's client for a tenant: base URL and key changed, nothing else. It never retries."""
    with ExitStack() as stack:

        def make(tenant: str) -> openai.OpenAI:
            return stack.enter_context(
                openai.OpenAI(
                    base_url=f"{served.url}/v1", api_key=served.keys[tenant], max_retries=0
                )
            )

        yield make


@pytest.fixture(scope="session")
def javascript_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the Node.js client. Skips without Node.js."""
    try:
        return javascript.install(tmp_path_factory.mktemp("javascript"))
    except Missing as missing:
        pytest.skip(str(missing))
