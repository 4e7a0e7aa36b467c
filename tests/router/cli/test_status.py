"""`domicile status`, against a router of its own."""

from collections.abc import Callable

from tests.router.cli.conftest import Domicile, Serving


def test_a_running_router_shows_its_state(domicile: Domicile, serving: Serving) -> None:
    serving.get("/healthz")
    ran = domicile("status", "--config", serving.config)
    assert ran.code == 0
    assert "local-model" in ran.out
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
