"""Every law, by name, as a function of a source of randomness."""

from __future__ import annotations

from collections.abc import Mapping

from tests.laws import test_eligibility as eligibility
from tests.laws import test_knowledge as knowledge
from tests.laws import test_narrowing as narrowing
from tests.laws import test_time as time
from tests.laws.worlds import Law

LAWS: Mapping[str, Law] = {
    check.__name__: check
    for check in (
        narrowing.formula,
        eligibility.law_6_inside_on_every_axis,
        time.law_13_bounds_end,
        time.law_8_good_until,
        narrowing.law_1_order_and_repetition,
        narrowing.law_2_more_rules_never_widen,
        narrowing.law_3_never_beyond_the_grant,
        narrowing.law_7_the_rest_only_removes,
        narrowing.obligations_meet,
        knowledge.law_4_open_is_never_better,
        knowledge.law_4_opening_is_never_better,
        knowledge.law_5_a_claim_never_widens,
        knowledge.outer_bound_is_never_wrong,
        knowledge.attributes_are_what_was_said,
        knowledge.outer_bound_is_exact,
        time.law_13_time_only_narrows,
        time.law_8_an_eligible_endpoint_stays_so,
        time.law_13_a_clock_behind_is_wrong,
    )
}
