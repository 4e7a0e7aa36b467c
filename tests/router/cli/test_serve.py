"""`domicile serve`, as a program of its own."""

from tests.router.cli.conftest import Domicile, Serving


def test_it_serves_until_it_is_told_to_stop(serving: Serving) -> None:
    assert b'"assistant"' in serving.get("/v1/models")
    assert serving.stop() == 0
    assert serving.running.stderr is not None
    assert "serving from" in serving.running.stderr.read()


def test_what_it_cant_start_with_is_one_line(program: Domicile, serving: Serving) -> None:
    serving.get("/healthz")
    second = program("serve", "--config", serving.config)
    assert second.code == 1, "the first one holds the log and the ports"
    (line,) = second.err.splitlines()
    assert line.startswith("error: ")


def test_without_a_configuration_it_says_how_to_make_one(
    program: Domicile, serving: Serving
) -> None:
    ran = program("serve", "--config", serving.root / "none.yaml")
    assert ran.code == 1
    assert "`domicile init` writes one" in ran.err
