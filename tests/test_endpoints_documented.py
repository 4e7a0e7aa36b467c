"""`docs/endpoints.md` names every setting that an endpoint may have, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from policies.endpoints import COMMON, FEATURES
from policies.files import EndpointConfig
from policies.findings import Severity
from policies.lint import lint
from regions.footprints.base import VENDORS
from router.providers.registry import PROVIDERS
from tests.policies.samples import NOW, loading

PAGE = (Path(__file__).parents[1] / "docs" / "endpoints.md").read_text()
NAME = re.compile(r"`([a-z_]+)`")


def documented() -> set[str]:
    """The settings of all tables: what stands in a first column."""
    rows = (line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    return {name for cell in rows for name in NAME.findall(cell)}


def settings() -> set[str]:
    """What a file may say of an endpoint of a kind that is spoken to."""
    found = {*EndpointConfig.model_fields, *COMMON}
    for kind in PROVIDERS:
        vendor = VENDORS[kind]
        found |= {*vendor.settings, *vendor.place_parameters.values()}
    return found


def test_every_setting_is_told_and_no_other() -> None:
    # The cache between two halves is moved by the router alone: nobody writes that.
    assert documented() == settings() - {"kv_transfer_params"}


def test_every_feature_is_told() -> None:
    assert {one for one in FEATURES if f"`{one}`" not in PAGE} == set()


def test_the_kinds_that_are_spoken_to_are_told() -> None:
    assert all(f"`{kind}`" in PAGE.split("## ")[0] for kind in PROVIDERS)


def test_its_example_is_one() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    loaded = loading(text)
    assert len(loaded.policy.endpoints) == 3
    found = [str(one) for one in lint(loaded, NOW) if one.severity is not Severity.NOTE]
    assert found == []
