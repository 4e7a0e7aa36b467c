"""What a value of a request keeps of a frozen dataclass."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from router.frozen import frozen


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


def test_it_has_no_other_fields() -> None:
    point: object = Point(1)
    with pytest.raises(AttributeError):
        point.z = 1  # type: ignore[attr-defined]
