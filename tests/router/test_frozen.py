"""What a value of a request keeps of a frozen dataclass."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace

import pytest

from router.frozen import FROM, frozen, maker


@frozen
class Point:
    """A value."""

    x: int
    y: int = 0


def test_compared_hashed_and_replaced_by_its_fields() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert len({Point(1, 2), Point(1, 2), Point(2)}) == 2
    assert replace(Point(1), y=5) == Point(1, 5)
    assert [field.name for field in fields(Point)] == ["x", "y"]


def test_no_field_is_set_again_or_added() -> None:
    point = Point(1)
    for name in ("x", "z"):
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(point, name, 1)
    assert "__slots__" in vars(Point)


@frozen
class Whole:
    """A value with everything a field may have."""

    parts: list[int] = field(default_factory=list)
    name: str = field(default="n", repr=False, compare=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.parts))


def test_defaults_factories_and_what_follows_from_them() -> None:
    one, other = Whole(), Whole([1, 2], name="m")
    assert (one.parts, one.size, other.size, other.name) == ([], 0, 2, "m")
    assert one.parts is not Whole().parts
    assert other == Whole([1, 2])
    assert repr(other) == "Whole(parts=[1, 2], size=2)"
    with pytest.raises(FrozenInstanceError):
        other.size = 3  # type: ignore[misc]


def test_copied_and_pickled_like_any_value() -> None:
    point = Point(1, 2)
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    assert type(copy.copy(point)) is Point


def test_what_is_missing_or_too_much_is_an_error() -> None:
    for wrong in ((), (1, 2, 3)):
        with pytest.raises(TypeError):
            Point(*wrong)
    with pytest.raises(TypeError):
        Point(1, z=2)  # type: ignore[call-arg]


def test_a_class_with_bases_is_refused() -> None:
    with pytest.raises(TypeError, match="bases"):

        @frozen
        class _Below(Point):
            z: int = 0


@frozen
class _Way:
    """A value that knows what is further back."""

    whole: Whole
    size: int = field(init=False, compare=False, metadata={FROM: "whole.size"})
    doubled: tuple[int, str] = (0, "")


def test_what_is_found_further_back_is_there_and_stays() -> None:
    way = _Way(Whole([1, 2]), (3, "x"))
    assert (way.size, replace(way, whole=Whole([1])).size) == (2, 1)
    assert way == copy.deepcopy(way) != _Way(Whole([1]))
    with pytest.raises(FrozenInstanceError):
        way.size = 3  # type: ignore[misc]


def test_a_maker_makes_what_the_class_makes() -> None:
    point, whole, way = maker(Point), maker(Whole), maker(_Way)
    assert point(1) == Point(1)
    assert point(1, y=2) == Point(1, 2)
    assert type(point(1)) is Point
    assert (whole().size, whole([1]).size, way(Whole([1])).size) == (0, 1, 1)
    with pytest.raises(FrozenInstanceError):
        point(1).x = 2  # type: ignore[misc]
    for wrong in ((), (1, 2, 3)):
        with pytest.raises(TypeError):
            point(*wrong)
