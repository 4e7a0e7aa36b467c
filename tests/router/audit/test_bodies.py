import pytest

from router.audit.bodies import Body, attempts_in, list_in, object_in, text_in, texts_in

BODY: Body = {"object": {"a": 1}, "list": ["a", 1, None, "b"], "text": "t", "number": 1}


def test_what_is_there_is_given() -> None:
    assert object_in(BODY, "object") == {"a": 1}
    assert list_in(BODY, "list") == ["a", 1, None, "b"]
    assert texts_in(BODY, "list") == ("a", "b")
    assert text_in(BODY, "text") == "t"


def test_what_stands_beside_one_attempt_is_its_own() -> None:
    one: Body = {"attempts": [{"endpoint": "a"}], "ms": 3, "call": "c", "millis": 9}
    assert attempts_in(one) == [{"endpoint": "a", "ms": 3, "call": "c"}]
    inside: Body = {"attempts": [{"endpoint": "a", "ms": 4}]}
    assert attempts_in(inside) == [{"endpoint": "a", "ms": 4}], "as it was written at first"
    two: Body = {"attempts": [{"endpoint": "a"}, "x", {"endpoint": "b"}], "ms": 3}
    assert attempts_in(two) == [{"endpoint": "a"}, {"endpoint": "b"}]
    assert attempts_in({}) == []


@pytest.mark.parametrize("name", [*BODY, "absent"])
def test_what_is_of_another_type_is_not_there(name: str) -> None:
    assert name == "object" or object_in(BODY, name) == {}
    assert name == "list" or list_in(BODY, name) == []
    assert name == "list" or texts_in(BODY, name) == ()
    assert name == "text" or text_in(BODY, name) == ""
