"""Values by identity: an equal object is another one, and nothing grows without end."""

from __future__ import annotations

from router.entries.alike import Alike


def test_found_by_the_object_and_not_by_its_equal() -> None:
    kept: Alike[list[int], str] = Alike()
    one, other = [1], [1]
    assert kept.put(one, "one") == "one"
    assert kept.get(one) == "one"
    assert kept.get(other) is None


def test_what_is_kept_keeps_its_object_so_that_an_id_is_no_others() -> None:
    kept: Alike[list[int], int] = Alike(bound=10_000)
    for number in range(1000):
        kept.put([number], number)  # nobody else holds it
    assert all(kept.get([number]) is None for number in range(1000))


def test_it_is_bounded() -> None:
    kept: Alike[object, int] = Alike(bound=3)
    held = [object() for _ in range(10)]
    for number, one in enumerate(held):
        kept.put(one, number)
        assert sum(kept.get(other) is not None for other in held) <= 3
        assert kept.get(one) == number
