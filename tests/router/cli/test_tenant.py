"""`domicile tenant move --plan`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.router.cli.conftest import Domicile
from tests.router.folders import sound


def test_what_would_be_outside_is_exit_code_3(tmp_path: Path, domicile: Domicile) -> None:
    config = sound(tmp_path).config
    ran = domicile("tenant", "move", "clinic", "--to", "FR", "--plan", "--config", config)
    assert ran.code == 3
    assert "OUTSIDE" in ran.out
    told = domicile(
        "tenant", "move", "clinic", "--to", "FR", "--plan", "--config", config, "--json"
    )
    rows = {one["name"]: one for one in json.loads(told.out)}
    assert rows["log"] == {
        "kind": "store", "name": "log", "places": ["self:fra1"], "inside": False,
        "held": "nothing yet",
    }  # fmt: skip
    assert rows["par-large"]["inside"]


def test_all_inside_is_exit_code_0(tmp_path: Path, domicile: Domicile) -> None:
    config = sound(tmp_path).config
    ran = domicile("tenant", "move", "clinic", "--to", "EU + US", "--plan", "--config", config)
    assert (ran.code, "OUTSIDE" in ran.out) == (0, False)


def test_wrong_words(tmp_path: Path, domicile: Domicile) -> None:
    config = sound(tmp_path).config
    ran = domicile("tenant", "move", "nobody", "--to", "EU", "--plan", "--config", config)
    assert (ran.code, "tenant `nobody`" in ran.err) == (1, True)
    assert domicile("tenant", "move", "clinic", "--to", "EU", "--config", config).code == 2
