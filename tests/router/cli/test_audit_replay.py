"""`domicile audit replay`: exit codes and words."""

from pathlib import Path

from router.audit.layout import Folder
from router.audit.reading import every
from tests.router.cli.conftest import Domicile
from tests.router.folders import two_continents
from tests.router.reloading import watched


async def filled(root: Path) -> Path:
    async with watched(two_continents(root)) as world:
        await world.ask()
    return root / "log"


async def test_the_same_again_is_success(domicile: Domicile, tmp_path: Path) -> None:
    log = await filled(tmp_path)
    ran = domicile("audit", "replay", log, "--sample", "5")
    assert (ran.code, ran.out) == (0, "audit replay: 1 decided again, 0 differ\n")
    decision = next(one for one in every(Folder(log)) if one.kind == "decision")
    told = domicile(
        "audit", "replay", log, f"{decision.place.log}/{decision.place.index}", "--json"
    )
    assert told.code == 0
    assert told.json["ok"] is True


async def test_a_difference_is_a_finding(domicile: Domicile, tmp_path: Path) -> None:
    log = await filled(tmp_path)
    decision = next(one for one in every(Folder(log)) if one.kind == "decision")
    Folder(log).snapshot(str(decision.body["snapshot"])).unlink()
    ran = domicile("audit", "replay", log, decision.id)
    assert ran.code == 1
    assert "not stored beside" in ran.out


async def test_usage(domicile: Domicile, tmp_path: Path) -> None:
    log = await filled(tmp_path)
    assert domicile("audit", "replay", log).code == 2
    assert domicile("audit", "replay", log, "x", "--sample", "1").code == 2
    assert domicile("audit", "replay", log, "req-nobody").code == 2
    assert domicile("audit", "replay", log, "router-1/99999").code == 1
