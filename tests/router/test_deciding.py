"""Steps 3 to 5 alone. The whole walk is tested in `test_hypothetical.py` and `test_app.py`."""

import pytest

from router import deciding
from router.decisions.hypothetical import Question, consider
from router.errors import RequestError
from router.pipeline import Refused
from router.snapshot import Snapshot
from tests.router.folders import AT, two_continents


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return two_continents(tmp_path_factory.mktemp("world")).snapshot()


def test_the_head_alone_tells_where_a_request_belongs(snapshot: Snapshot) -> None:
    def home(tenant: str) -> object:
        found = consider(snapshot, Question(tenant, AT, "assistant"))
        return deciding.elsewhere(found.decided.classified.admitted.authenticated)

    assert home("shop") is None
    assert home("american") is not None
    assert home("nobody") is None, "nothing is granted: that is step 4's to say"


def test_claims_do_not_replace_what_silence_means(snapshot: Snapshot) -> None:
    said = {"data_class": ["public"]}
    found = consider(snapshot, Question("shop", AT, "assistant", said=said)).decided
    assert found.classified.attributes.states["data_class"].values == {"public", "internal"}


def test_an_app_trusted_for_an_attribute_replaces_it(snapshot: Snapshot) -> None:
    said = {"data_class": ["public"]}
    found = consider(snapshot, Question("shop", AT, "assistant", "crm", said)).decided
    assert found.classified.attributes.states["data_class"].values == {"public"}


def test_a_decision_that_allows_nothing_says_so(snapshot: Snapshot) -> None:
    decided = consider(snapshot, Question("nobody", AT, "assistant")).decided
    error = deciding.refusal(decided)
    assert error is not None
    assert error.code == "no_grant"
    assert deciding.refusal(consider(snapshot, Question("shop", AT, "assistant")).decided) is None


def test_a_model_that_is_not_there_is_refused(snapshot: Snapshot) -> None:
    decided = consider(snapshot, Question("shop", AT, "missing")).decided
    with pytest.raises(Refused) as raised:
        deciding.graded(decided)
    assert isinstance(raised.value.error, RequestError)
    assert raised.value.error.code == "model_not_found"


def test_without_a_grader_the_highest_tier_serves(snapshot: Snapshot) -> None:
    decided = consider(snapshot, Question("shop", AT, "assistant")).decided
    found = deciding.graded(decided)
    assert (found.floor.label, found.grader) == ("large", "highest")
