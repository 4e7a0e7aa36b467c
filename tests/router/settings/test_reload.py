"""Reload: what is on disk serves when all of it is sound, else the old one serves on."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from policies.gathered import PolicyFile
from policies.signatures import sign
from router import admin
from router.audit.note import create_signing_key
from router.audit.reading import Shown
from router.audit.verify import verify
from tests.router.folders import ROUTER, TWO_CONTINENTS, TWO_RULES, Box, sound, write
from tests.router.reloading import CLINIC, World, watched
from tests.router.scripted import refused


async def status(world: World) -> dict[str, object]:
    app = admin.build(world.router.live, world.watches)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://admin"
    ) as client:
        found: dict[str, object] = (await client.get("/status")).json()
    return found


async def test_a_changed_rule_is_served_after_two_equal_looks(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        old = world.router.live.snapshot
        world.change("rules/example.yaml", "process_within: DE", "process_within: FR")
        await world.reloader.look()
        assert world.router.live.snapshot is old  # it may be half written still
        await world.reloader.look()
        new = world.router.live.snapshot
        assert new.policy.digest != old.policy.digest
        [start, entry] = world.entries("snapshot")
        assert (start.body["to"], start.body["why"]) == (old.digest, "start")
        assert (entry.body["from"], entry.body["to"]) == (old.digest, new.digest)
        assert entry.body["why"] == "reload"
        assert world.router.live.metrics.value("domicile_reloads_total", ("loaded",)) == 1
    assert verify(tmp_path / "log").ok


async def test_nothing_happens_while_nothing_changes(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        old = world.router.live.snapshot
        for _ in range(3):
            await world.reloader.look()
        assert world.router.live.snapshot is old
        assert len(world.entries("snapshot")) == 1  # the start's


async def test_each_request_uses_one_version_from_start_to_end(tmp_path: Path) -> None:
    """config-02: the policy changes while a request is open; it keeps the one it came with."""
    gate = asyncio.Event()
    worlds: list[World] = []

    async with watched(sound(tmp_path)) as world:
        worlds.append(world)
        send = world.transport.send

        async def held(*given: object) -> object:
            await gate.wait()
            return await send(*given)  # type: ignore[arg-type]

        world.transport.send = held  # type: ignore[method-assign, assignment]
        before = world.router.live.snapshot
        first = asyncio.create_task(world.ask())
        await asyncio.sleep(0.05)
        world.change("rules/example.yaml", "red zone", "red area")
        await world.settle()
        after = world.router.live.snapshot
        gate.set()
        assert (await first).status == 200
        assert (await world.ask()).status == 200
        decisions = world.entries("decision")
        assert [e.body["snapshot"] for e in decisions] == [before.digest, after.digest]
        policies = [who["policy"] for e in decisions if isinstance(who := e.body["who"], dict)]
        assert policies == [before.policy.digest, after.policy.digest]
        assert first.result().sent["x-domicile-policy"] != after.policy.digest[:12]


async def test_limits_come_with_the_snapshot_too(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        limits = "limits: {body: 10b, concurrency: 3}\n  admin:"
        world.change("domicile.yaml", "admin:", limits)
        await world.settle()
        assert world.router.live.concurrency.limit == 3
        assert (await world.ask()).status == 200  # the exchange of these tests has no limit
        assert world.router.live.snapshot.config.router.limits.body == 10


async def test_status_tells_what_is_active_and_what_is_on_disk(tmp_path: Path) -> None:
    """config-03: one can see whether an edit took effect."""
    async with watched(sound(tmp_path)) as world:
        await world.reloader.look()
        files = (await status(world))["files"]
        assert isinstance(files, dict)
        assert files["on_disk"] == files["active"]
        world.change("rules/example.yaml", "red zone", "red area")
        await world.reloader.look()
        pending = (await status(world))["files"]
        assert isinstance(pending, dict)
        assert pending["on_disk"] != pending["active"] == files["active"]
        await world.reloader.look()
        done = (await status(world))["files"]
        assert isinstance(done, dict)
        assert done["on_disk"] == done["active"] == pending["on_disk"]


async def test_a_rotated_secret_is_used_though_no_setting_changed(tmp_path: Path) -> None:
    """config-04."""
    token = tmp_path / "secrets" / "token"
    token.parent.mkdir()
    token.write_text("first")
    box = sound(tmp_path)
    baseline = box.root / "baseline" / "main.yaml"
    text = baseline.read_text().replace(
        "fra-large: {kind: vllm,", 'fra-large: {kind: vllm, credentials: "file:secrets/token",'
    )
    baseline.write_text(text)
    async with watched(box) as world:
        await world.ask()
        old = world.router.live.snapshot
        token.write_text("second")
        await world.settle()
        assert world.router.live.snapshot.digest == old.digest
        await world.ask()
        sent = [dict(r.headers)[b"authorization"] for r in world.transport.sent]
        assert sent == [b"Bearer first", b"Bearer second"]


async def test_a_swapped_symlink_is_a_change(tmp_path: Path) -> None:
    """As Kubernetes mounts config maps: `rules` → `..data/rules` → a dated folder."""
    box = sound(tmp_path)
    (tmp_path / "v1").mkdir()
    (tmp_path / "v2").mkdir()
    rules = tmp_path / "rules" / "example.yaml"
    (tmp_path / "v1" / "example.yaml").write_text(rules.read_text())
    (tmp_path / "v2" / "example.yaml").write_text(rules.read_text().replace("Art. 9", "Art. 44"))
    rules.unlink()
    (tmp_path / "..data").symlink_to("v1")
    rules.symlink_to(Path("..") / "..data" / "example.yaml")
    async with watched(box) as world:
        (tmp_path / "..data_tmp").symlink_to("v2")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        await world.settle()
        assert any(r.because == "Art. 44" for r in world.router.live.snapshot.policy.rules)


async def test_a_bad_candidate_leaves_the_old_one_serving_and_says_so(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        old = world.router.live.snapshot
        world.change("rules/example.yaml", "process_within: DE", "process_within: EUU")
        await world.settle()
        assert world.router.live.snapshot is old
        assert (await world.ask()).status == 200
        told = await status(world)
        assert isinstance(files := told["files"], dict)
        assert "EUU" in files["refused"]
        assert "rules/example.yaml:" in files["refused"]
        assert isinstance(degraded := told["degraded"], list)
        assert any("EUU" in one for one in degraded)
        assert world.router.live.metrics.value("domicile_reloads_total", ("refused",)) == 1
        [entry] = [e for e in world.entries("administration")
                   if e.body["event"] == "reload_refused"]  # fmt: skip
        assert "EUU" in str(entry.body["reasons"])
        await world.settle()  # it is not judged again and again
        assert world.router.live.metrics.value("domicile_reloads_total", ("refused",)) == 1
        world.change("rules/example.yaml", "process_within: EUU", "process_within: DE")
        await world.reloader.look()
        assert world.router.live.files.refused == ""


async def test_lint_errors_stop_a_reload_unless_they_serve_already(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        nobody = "  - {name: nowhere, process_within: DE, retain_within: FR - FR}\n"
        with (tmp_path / "rules" / "example.yaml").open("a") as file:
            file.write(nobody)
        await world.settle()
        assert world.router.live.files.refused != ""


async def test_a_case_that_fails_stops_a_reload(tmp_path: Path) -> None:
    box = sound(tmp_path)
    text = box.config.read_text()
    box.config.write_text(text.replace("rules/*.yaml]", "rules/*.yaml], cases: [cases/*.yaml]"))
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "health.yaml").write_text(
        "now: 2026-12-01\nrouter: self:fra1\ncases:\n  - name: health stays in Germany\n"
        "    request: {tenant: clinic, model: assistant, headers: {data_class: health}}\n"
        "    expect: {processed_within: DE}\n"
    )
    async with watched(box) as world:
        old = world.router.live.snapshot
        world.change("rules/example.yaml", "process_within: DE", "process_within: EU")
        await world.settle()
        assert world.router.live.snapshot is old
        assert "case `health stays in Germany`" in world.router.live.files.refused
        world.change("cases/health.yaml", "processed_within: DE", "processed_within: EU")
        await world.settle()
        assert world.router.live.snapshot is not old


async def test_what_is_wrong_already_does_not_stop_a_secret(tmp_path: Path) -> None:
    box = write(tmp_path, TWO_CONTINENTS, TWO_RULES, ROUTER)  # lint finds errors in it
    async with watched(box, environment={"DOMICILE_TYPO": "1"}) as world:
        world.change("keys.yaml", "id: boss", "id: chief")
        await world.settle()
        assert world.router.live.files.refused == ""
        assert {h.key for h in world.router.live.snapshot.keys.holders} == {"clinic-1", "chief"}
        world.change("baseline/main.yaml", "version: 1", "# moves every line\nversion: 1")
        world.change("keys.yaml", "id: chief", "id: boss")
        await world.settle()
        assert world.router.live.files.refused == ""
        assert {h.key for h in world.router.live.snapshot.keys.holders} == {"clinic-1", "boss"}


def without(text: str) -> list[str]:
    """The configuration with each optional field left out in turn."""
    lines = text.splitlines(keepends=True)
    return ["".join(lines[:n] + lines[n + 1 :]) for n in range(len(lines))]


@pytest.mark.parametrize("number", range(len(ROUTER.splitlines())))
async def test_a_field_left_out_is_a_default_or_a_clear_error(tmp_path: Path, number: int) -> None:
    """config-05."""
    async with watched(sound(tmp_path)) as world:
        old = world.router.live.snapshot
        (tmp_path / "domicile.yaml").write_text(without(ROUTER)[number])
        await world.settle()
        files = world.router.live.files
        assert files.refused or files.on_disk == files.active
        if files.refused:
            assert world.router.live.snapshot is old
            assert "can't be checked" not in files.refused
        assert (await world.ask()).status == 200


async def test_what_needs_a_new_process_is_named(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        world.change("domicile.yaml", "self:fra1", "self:par1")
        await world.settle()
        assert "`router.region` needs a new process" in world.router.live.files.refused


@pytest.mark.parametrize("how", ["written", "renamed", "symlink swapped"])
async def test_another_signing_key_in_the_same_file_needs_a_new_process(
    tmp_path: Path, how: str
) -> None:
    """It signs nothing before that: a status that calls it active would be wrong, and workers that
    are started later would sign with another key than their siblings."""
    box = sound(tmp_path)
    volumes = [tmp_path / "..one", tmp_path / "..two"]
    for volume in volumes:
        volume.mkdir()
    (volumes[0] / "log.key").write_bytes((tmp_path / "log.key").read_bytes())
    create_signing_key(volumes[1] / "log.key")
    (tmp_path / "log.key").unlink()
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "log.key").symlink_to("..data/log.key")
    old, new = [(volume / "log.key").read_bytes() for volume in volumes]

    def put(number: int) -> None:
        if how == "written":
            (volumes[0] / "log.key").write_bytes((old, new)[number])
        else:
            name = "log.key" if how == "renamed" else "..data"
            to = f"..{('one', 'two')[number]}" + ("/log.key" if how == "renamed" else "")
            (tmp_path / "tmp").symlink_to(to)
            (tmp_path / "tmp").rename(tmp_path / name)

    async with watched(box) as world:
        before, files = world.router.live.snapshot, world.router.live.files
        put(1)
        await world.settle()
        assert "`log.signing_key` needs a new process" in files.refused
        assert files.on_disk != files.active
        assert world.router.live.snapshot is before
        put(0)
        await world.settle()
        assert (files.refused, files.on_disk) == ("", files.active)


async def test_sighup_tries_again_at_once(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        world.change("rules/example.yaml", "red zone", "red area")
        world.watches.look_at_files()
        await asyncio.gather(*world.watches._asked)
        assert any(r.because == "red area" for r in world.router.live.snapshot.policy.rules)


async def test_a_storm_of_signals_is_two_looks(tmp_path: Path) -> None:
    """Files that are refused were checked once for each signal, for minutes."""
    async with watched(sound(tmp_path)) as world:
        world.change("rules/example.yaml", "red zone", 'red zone"')
        for _ in range(20):
            world.watches.look_at_files()
        await asyncio.gather(*world.watches._asked)
        assert world.router.live.files.refused
        assert 1 <= len(refusals(world)) <= 2
        world.change("rules/example.yaml", 'red zone"', "red area")
        first = asyncio.create_task(world.reloader.look(now=True))
        await asyncio.gather(*(world.reloader.look(now=True) for _ in range(20)))
        assert any(r.because == "red area" for r in world.router.live.snapshot.policy.rules)
        await first
        waiting = [asyncio.create_task(world.reloader.look(now=True)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait(waiting)
        await world.reloader.look(now=True)  # who leaves takes nobody else's turn


def refusals(world: World) -> list[Shown]:
    found = world.entries("administration")
    return [one for one in found if one.body["event"] == "reload_refused"]


async def test_a_revoked_key_stops_at_its_next_attempt(tmp_path: Path) -> None:
    worlds: list[World] = []

    async def revoke() -> None:
        text = (tmp_path / "keys.yaml").read_text()
        kept = [line for line in text.splitlines() if "clinic-1" not in line]
        (tmp_path / "keys.yaml").write_text("\n".join(kept) + "\n")
        await worlds[0].settle()

    async with watched(sound(tmp_path), lambda host, number: refused()) as world:
        worlds.append(world)
        send = world.transport.send

        async def revoking(*given: object) -> object:
            await revoke()
            return await send(*given)  # type: ignore[arg-type]

        world.transport.send = revoking  # type: ignore[method-assign, assignment]
        done = await world.ask(CLINIC)
        assert done.status == 503
        assert len(world.transport.sent) == 1  # the plan had more; the key was gone
        assert b'"vetoed":' in done.written


def keyed(box: Box, key: Ed25519PrivateKey) -> None:
    """Make this the compliance key of a folder."""
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    (box.root / "dpo.pub").write_text(base64.b64encode(public).decode())
    text, rules = box.config.read_text(), "rules: [rules/*.yaml]}"
    box.config.write_text(text.replace(rules, f"{rules[:-1]}, signed_by: [file:dpo.pub]}}"))


def _signs(box: Box, name: str) -> Callable[[Ed25519PrivateKey], None]:
    def put(key: Ed25519PrivateKey) -> None:
        file = box.root / "baseline" / "main.yaml"
        signature = sign([PolicyFile("baseline/main.yaml", file.read_bytes())], key)
        (box.root / "baseline" / name).write_bytes(signature)

    return put


async def test_other_compliance_keys_need_the_old_ones(tmp_path: Path) -> None:
    box = sound(tmp_path)
    old, new = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    keyed(box, old)
    _signs(box, "old.sig")(old)
    async with watched(box) as world:
        serving = world.router.live.snapshot
        keyed(box, new)
        (tmp_path / "baseline" / "old.sig").unlink()
        _signs(box, "new.sig")(new)
        await world.settle()
        assert world.router.live.snapshot is serving
        assert "the old ones must sign too" in world.router.live.files.refused
        _signs(box, "old.sig")(old)
        await world.settle()
        assert world.router.live.files.refused == ""
        [start, entry] = world.entries("snapshot")
        assert len(start.body["signers"]) == 1  # type: ignore[arg-type]
        assert entry.body["signers"] != start.body["signers"]
        assert len(entry.body["signers"]) == 1  # type: ignore[arg-type]


async def test_health_of_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        world.router.live.health.mark("iad-large", 0.0, 1e9)
        text = (tmp_path / "baseline" / "main.yaml").read_text()
        kept = text.replace(", iad-large]", "]")
        head, _, tail = kept.partition("  iad-large:")
        (tmp_path / "baseline" / "main.yaml").write_text(head + tail.split("\n", 2)[2])
        await world.settle()
        assert world.router.live.files.refused == ""
        assert "iad-large" not in world.router.live.snapshot.targets
        assert world.router.live.health.marked(1.0) == ()
