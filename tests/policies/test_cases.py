import pytest

from policies.cases import Report, Suite, run
from regions.document import DocumentErrors
from tests.policies.samples import EXAMPLE, loading

HEAD = "now: 2026-12-01\nrouter: aws:eu-central-1\ncases:\n"
ASK = "request: {tenant: clinic, model: assistant}"


def report(*cases: str, policy: str = EXAMPLE) -> Report:
    listed = "".join(f"  - {{name: c{n}, {case}}}\n" for n, case in enumerate(cases))
    return run(loading(policy), Suite.parse(HEAD + listed, "x.cases.yaml"))


def problems(case: str, policy: str = EXAMPLE) -> tuple[str, ...]:
    return report(case, policy=policy).results[0].problems


def test_a_case_that_passes_and_its_place() -> None:
    found = report(f"{ASK}, expect: {{endpoints: [fra-small, fra-large, sonnet-eu]}}")
    assert found.passed
    assert str(found.results[0].mark) == "x.cases.yaml:4:5"


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("endpoints: [fra-small]", "endpoints: expected ['fra-small'], got"),
        ("refused: no_grant", "refused: expected `no_grant`, got `None`"),
        ("excluded: {fra-small: process_outside}", "should be excluded by `process_outside`"),
        ("applied: [health-in-eu]", "applied: expected ['health-in-eu'], got []"),
        ("unknown: [data_class]", "unknown: expected"),
        ("because: [x]", "no applied rule says `x`"),
        ("obligations: [no_batch]", "obligations: expected ['no_batch'], got []"),
        ("require: [baa]", "require: expected"),
        ("dry_run: [r]", "dry_run: expected"),
        ("processed_within: DE", "processed_within: `DE` is exceeded"),
        ("retained_within: EUU", "retained_within: `EUU` is not known"),
    ],
)
def test_every_expectation_can_fail(expect: str, problem: str) -> None:
    found = problems(f"{ASK}, expect: {{{expect}}}")
    assert any(problem in one for one in found), found


def test_worlds() -> None:
    def endpoints(world: str) -> tuple[tuple[str, ...], str | None]:
        happened = report(f"{ASK}, world: {{{world}}}, expect: {{}}").results[0].happened
        return happened.endpoints, happened.refused

    assert endpoints("down: aws") == (("fra-small", "fra-large"), None)
    assert endpoints("down: [self:fra1]") == (("sonnet-eu",), None)
    assert endpoints("down: [self, aws]") == ((), "no_endpoint_available")
    assert endpoints("widened: {sonnet-eu: [aws:us-east-1]}") == (("fra-small", "fra-large"), None)
    assert endpoints("router: aws:us-east-1") == ((), "misdirected")
    # 90 days later the facts about the profile have aged
    assert endpoints("now: 2027-06-01") == (("fra-small", "fra-large"), None)
    assert endpoints("clock: unknown") == (("fra-small", "fra-large"), None)


@pytest.mark.parametrize(
    ("world", "problem"),
    [
        ("down: fra-smal", "`fra-smal` is no endpoint, provider or region; did you mean"),
        ("widened: {sonnet: [aws:us-east-1]}", "`sonnet` is no endpoint"),
        ("widened: {sonnet-eu: [aws:nowhere]}", "`aws:nowhere` is not in the catalog"),
        ("router: aws:nowhere", "`aws:nowhere` is not in the catalog"),
    ],
)
def test_a_world_that_names_nothing_is_a_problem(world: str, problem: str) -> None:
    assert problem in "".join(problems(f"{ASK}, world: {{{world}}}, expect: {{}}"))


@pytest.mark.parametrize(
    ("request_", "refused"),
    [
        ("{tenant: clinic, model: nope}", "model_not_found"),
        ("{tenant: nobody, model: assistant}", "no_grant"),
        ("{tenant: clinic, model: assistant, headers: {data_class: secret}}", "attribute_unknown"),
        ("{tenant: clinic, model: assistant, headers: {sector: health}}", "attribute_not_yours"),
    ],
)
def test_refusals(request_: str, refused: str) -> None:
    assert problems(f"request: {request_}, expect: {{refused: {refused}}}") == ()


def test_conflicts_are_refusals() -> None:
    rules = (
        "  - {name: a, when: {data_class: public}, obligations: {tier: {floor: large}}}\n"
        "  - {name: b, when: {data_class: public}, obligations: {tier: {ceiling: small}}}\n"
        "  - {name: c, when: {data_class: internal}, prefer: [DE, FR]}\n"
        "  - {name: d, when: {data_class: internal}, prefer: [FR]}\n"
    )
    policy = EXAMPLE.replace("assert:", f"{rules}assert:")
    crm = "request: {tenant: clinic, app: crm, model: assistant, headers: {data_class: %s}}"
    assert problems(f"{crm % 'public'}, expect: {{refused: obligations_conflict}}", policy) == ()
    assert problems(f"{crm % 'internal'}, expect: {{refused: prefer_conflict}}", policy) == ()


def test_coverage_names_the_branches_no_case_took() -> None:
    quiet = report(f"{ASK}, expect: {{}}")
    assert quiet.uncovered == ("health-in-eu: applies",)
    assert quiet.coverage == 0.5
    sick = ASK.replace("model:", "headers: {data_class: health}, model:")
    assert report(f"{ASK}, expect: {{}}", f"{sick}, expect: {{}}").coverage == 1.0
    assert report(f"{ASK}, expect: {{}}", policy=EXAMPLE.split("rules:")[0]).coverage == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cases: []", "now"),
        (HEAD + "  - {name: x, request: {tenant: t, model: m}, expext: {}}", "expext"),
        (HEAD + "  - {name: x, request: {tenant: t, model: m}, expect: {endpoint: a}}", "endpoint"),
    ],
)
def test_bad_files(text: str, message: str) -> None:
    with pytest.raises(DocumentErrors, match=message):
        Suite.parse(text, "x.cases.yaml")
