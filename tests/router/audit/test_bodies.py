import pytest

from router.audit.bodies import Body, list_in, object_in, text_in, texts_in

BODY: Body = {"object": {"a": 1}, "list": ["a", 1, None, "b"], "text": "t", "number": 1}


def test_what_is_there_is_given() -> None:
    assert object_in(BODY, "object") == {"a": 1}
    assert list_in(BODY, "list") == ["a", 1, None, "b"]
    assert texts_in(BODY, "list") == ("a", "b")
    assert text_in(BODY, "text") == "t"


@pytest.mark.parametrize("name", [*BODY, "absent"])
def test_what_is_of_another_type_is_not_there(name: str) -> None:
    assert name == "object" or object_in(BODY, name) == {}
    assert name == "list" or list_in(BODY, name) == []
    assert name == "list" or texts_in(BODY, name) == ()
    assert name == "text" or text_in(BODY, name) == ""
