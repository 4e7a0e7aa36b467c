from collections.abc import Callable

import pytest

from house import outbound
from house.tree import Tree

Plant = Callable[[dict[str, str]], Tree]


def found(tree: Tree) -> list[int]:
    return [finding.line for finding in outbound.findings(tree)]


@pytest.mark.parametrize(
    "line",
    [
        "import httpx",
        "import socket",
        "from urllib import request",
        "import urllib.request as r",
        "from urllib.request import urlopen",
        "from http import client",
        "from boto3.session import Session",
        "def a():\n    import aiohttp",
        "asyncio.open_connection('a', 1)",
        "loop.create_connection(p, 'a', 1)",
        "open_connection('a', 1)",
    ],
)
def test_others_open_nothing(plant: Plant, line: str) -> None:
    assert len(found(plant({"router/dispatch.py": line}))) == 1
    assert found(plant({"router/transport/dial.py": line, "router/dispatch.py": ""})) == []


@pytest.mark.parametrize("path", ["router/watch/drift.py", "router/audit/seal.py"])
def test_the_stores_may_use_the_vendor_library(plant: Plant, path: str) -> None:
    assert found(plant({path: "import boto3"})) == []
    assert found(plant({path: "import requests"})) == [1]


def test_value_classes_of_a_client_library_open_nothing(plant: Plant) -> None:
    use = "import httpx\ndef a(): return httpx.Response(200)\n"
    assert found(plant({"router/providers/a.py": use})) == []


@pytest.mark.parametrize(
    "more", ["httpx.get('x')", "b = httpx", "import httpx as h", "from httpx import get"]
)
def test_more_than_its_value_classes_is_too_much(plant: Plant, more: str) -> None:
    use = "import httpx\ndef a(): return httpx.Response(200)\n"
    assert found(plant({"router/providers/a.py": use + more})) != []


def test_names_that_only_begin_alike_are_other_modules(plant: Plant) -> None:
    files = {
        "router/a.py": "import redislike\nfrom urllib import parse\nfrom http import HTTPStatus"
    }
    assert found(plant(files)) == []
    assert found(plant({"router/transporter.py": "import httpx"})) == [1]


def test_tests_may_connect(plant: Plant) -> None:
    assert found(plant({"tests/test_a.py": "import httpx"})) == []
