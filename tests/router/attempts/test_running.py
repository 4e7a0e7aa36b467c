"""What counts as an attempt: whoever might have answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from router.attempts.running import PREFILLED, Run
from router.audit.log import Committed
from router.types import Attempt, Plan


def test_a_prompt_computed_for_another_is_no_try() -> None:
    plan = SimpleNamespace(arrival=SimpleNamespace(snapshot=None))
    committed = cast("Committed[Plan]", SimpleNamespace(subject=plan))
    run = Run(committed, [])
    assert run.tried == 0
    run.attempts += [
        Attempt("pre", "pre", PREFILLED, 200, 1),
        Attempt("fra", "fra", "ill", 500, 1),
        Attempt("par", "par", "ok", 200, 1),
    ]
    assert run.tried == 2
