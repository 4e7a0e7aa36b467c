from pathlib import Path

from router.audit.disk import LocalDisk
from router.loading import log_settings
from router.watch.peers import NOTE, PeerWatch
from tests.router.audit.logbox import LogBox
from tests.router.audit.test_adoption import orphan
from tests.router.folders import sound
from tests.router.reloading import watched


async def test_what_became_of_a_peers_log_is_in_ones_own(tmp_path: Path) -> None:
    box = LogBox(tmp_path / "peer")
    await orphan(box)
    async with watched(sound(tmp_path)) as world:
        settings = log_settings(world.router.live.snapshot.config, tmp_path)
        key = settings.signing_key
        assert isinstance(key, Path)
        watch = PeerWatch(world.router.live, settings, bytes, LocalDisk())
        await watch.look()
        assert world.entries("recovery") == []
        # Another router's log of the same folder and lasting key, with a process that is gone.
        other = LogBox(tmp_path / "other")
        other.key_file.write_bytes(key.read_bytes())
        await orphan(other)
        assert NOTE not in world.router.live.notes


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
