"""What may be said of grading in a baseline file, and what it comes to."""

from __future__ import annotations

import pytest

from tests.policies.samples import errors, loaded

ENDPOINTS = """
endpoints:
  s: {kind: vllm, region: "self:fra1", url: "http://s", model: small, price: {input: 1, output: 1}}
  l: {kind: vllm, region: "self:fra1", url: "http://l", model: large, price: {input: 3, output: 3}}
  free: {kind: vllm, region: "self:fra1", url: "http://f", model: free}
regions: {"self:fra1": {country: DE}}
"""


def model(grading: str, grade: str = "on", tiers: str = "{small: s, large: l}") -> str:
    return f"models: {{m: {{grade: {grade}, grading: {grading}, tiers: {tiers}}}}}{ENDPOINTS}"


def test_a_price_becomes_the_share_that_costs_it() -> None:
    assert loaded(model("{price: 1.5}")).models["m"].grading.share == 0.25
    assert loaded(model("{price: 9}")).models["m"].grading.share == 1.0
    assert loaded(model("{strong_share: 0.3}")).models["m"].grading.share == 0.3


def test_what_is_not_said_has_a_default() -> None:
    plain = loaded(f"models: {{m: {{tiers: {{small: s, large: l}}}}}}{ENDPOINTS}").models["m"]
    assert plain.grade == "observe"
    assert (plain.grading.share, plain.grading.accept_prior) == (0.5, False)
    assert plain.grading.cascade is None
    assert loaded(model("{cascade: {}}")).models["m"].grading.cascade == -1.5


def test_a_model_of_its_own_may_judge() -> None:
    text = model('{judge: "model:j"}')
    for tiers in ("{large: free}", "{small: s, large: l}", "{large: [s, l]}"):
        given = text.replace("models: {", f"models: {{j: {{tiers: {tiers}}}, ")
        assert loaded(given).models["m"].grading.judge == "model:j"


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        (model("{strong_share: 0.5, price: 2}"), "keep one"),
        (model("{strong_share: 1.5}"), "less than or equal to 1"),
        (model("{threshold: 0.5}"), "threshold"),
        (model("{price: 0.5}"), "below the small tier's 1"),
        (model("{price: 2}", tiers="{small: free, large: l}"), "give every endpoint a `price`"),
        (model("{price: 2}", tiers="{small: l, large: s}"), "must be above the small's"),
        (model("{}", tiers="{large: l}"), "one tier is never graded"),
        (model("{}", tiers="{small: [], large: l}"), "tier `small` of model `m` has no endpoint"),
        (model("{judge: exakt}"), "is no judge"),
        (model('{judge: "model:n"}'), "model `n` is not defined"),
        (
            model('{judge: "model:j"}').replace("models: {", "models: {j: {tiers: {large: s}}, "),
            "`j` is the small tier, which would judge itself",
        ),
        (model("{judge: labels}"), "name it: `references"),
        (model('{judge: exact, references: "file:x"}'), "only judges labels and tests read"),
        (model('{judge: tests, references: "file:x"}'), "say `accept_code: true`"),
        (model('{judge: labels, references: "https://x"}'), "references"),
        (model("{cascade: {}}", grade="observe"), "needs `grade: on`"),
        (model("{explore: 0.2}"), "less than or equal to 0.05"),
        # A difficulty model elsewhere would be one more place that the prompt goes to.
        (model('{model: "https://judge.example.com/v1"}'), "file:"),
    ],
)
def test_mistakes(baseline: str, message: str) -> None:
    found = errors(baseline)
    assert any(message in one for one in found), found
    assert all(one.startswith("main.yaml:") for one in found)


def test_a_judge_that_refers_to_a_file() -> None:
    text = '{judge: tests, references: "file:t.jsonl", accept_code: true}'
    found = loaded(model(text)).models["m"].grading
    assert (found.judge, found.references, found.accept_code) == ("tests", "file:t.jsonl", True)


def test_consent_is_a_small_share() -> None:
    assert loaded("tenants: {t: {shadow: 0.02}}").tenants["t"].shadow == 0.02
    assert loaded("tenants: {t: {}}").tenants["t"].shadow == 0.0
    assert errors("tenants: {t: {shadow: 0.5}}")
