from pathlib import Path

from router.audit.adoption import SILENT
from router.audit.disk import LocalDisk
from router.audit.layout import Folder
from router.settings.loading import log_settings
from router.watch.peers import NOTE, PeerWatch
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox
from tests.router.audit.test_adoption import orphan
from tests.router.folders import sound
from tests.router.reloading import watched


async def test_what_became_of_a_peers_log_is_in_ones_own(tmp_path: Path) -> None:
    box = LogBox(tmp_path / "peer")
    async with watched(sound(tmp_path)) as world:
        live = world.router.live
        box.clock.now = live.wall_time() - 3 * SILENT - 200
        await orphan(box)
        side = Folder(box.folder).log("eu-2").openings
        side.write_bytes(b"nonsense\n")
        watch = PeerWatch(live, box.settings("eu-1"), box.entropy.randbytes, QuickDisk())
        await watch.look()
        assert world.entries("recovery") == []
        assert live.notes[NOTE].startswith("eu-2: ")
        assert "line 1" in live.notes[NOTE]
        side.unlink()
        await watch.look()
        (told,) = world.entries("recovery")
        assert (told.body["event"], told.body["log"]) == ("adopted", "eu-2")
        assert NOTE not in live.notes


async def test_what_can_not_be_read_is_told_and_tried_again(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        settings = log_settings(world.router.live.snapshot.config, tmp_path)
        roster = settings.dir / "roster.jsonl"
        whole = roster.read_bytes()
        roster.write_bytes(b"nonsense\n")
        watch = PeerWatch(world.router.live, settings, bytes, LocalDisk())
        await watch.look()
        assert "roster line 1" in world.router.live.notes[NOTE]
        roster.write_bytes(whole)
        await watch.look()
        assert NOTE not in world.router.live.notes
