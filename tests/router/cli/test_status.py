"""`domicile status`, against a router of its own."""

from collections.abc import Callable

from router.cli.status import rows_of
from tests.router.cli.conftest import Domicile, Serving


def test_a_running_router_shows_its_state(domicile: Domicile, serving: Serving) -> None:
    serving.get("/healthz")
    ran = domicile("status", "--config", serving.config)
    assert ran.code == 0
    assert "local-model" in ran.out
    assert "files.on_disk" in ran.out
    assert "{" not in ran.out, "no object as Python writes it"
    told = domicile("status", "--admin", f"http://127.0.0.1:{serving.admin}", "--json")
    assert told.code == 0
    assert "endpoints" in told.json


def test_a_router_that_does_not_answer_is_said(
    domicile: Domicile, free_port: Callable[[], int]
) -> None:
    ran = domicile("status", "--admin", f"http://127.0.0.1:{free_port()}")
    assert ran.code == 1
    assert "does not answer" in ran.err


def test_what_is_no_url_is_told(domicile: Domicile) -> None:
    ran = domicile("status", "--admin", "junk")
    assert (ran.code, ran.err.startswith("error: `junk` is no URL")) == (1, True)


def test_values_are_rows_that_people_can_read() -> None:
    shown = {
        "log": "failed",
        "loaded_at": 1_796_009_366.77,
        "files": {"active": "a1", "looked_at": 0.0, "refused": ""},
        "quarantined": [{"what": "key", "name": "k", "by": "boss", "at": 1_796_009_366.0}],
        "drifted": [],
        "degraded": ["log: no space; restart", "marked: fra"],
        "checkpoint": None,
        "open_requests": 0,
    }
    assert list(rows_of(shown)) == [
        ("log", "failed"),
        ("loaded_at", "2026-11-30T03:29:26+00:00"),
        ("files.active", "a1"),
        ("files.looked_at", "-"),
        ("files.refused", "-"),
        ("quarantined", "what: key, name: k, by: boss, at: 2026-11-30T03:29:26+00:00"),
        ("drifted", "-"),
        ("degraded", "log: no space; restart\nmarked: fra"),
        ("checkpoint", "-"),
        ("open_requests", "0"),
    ]
