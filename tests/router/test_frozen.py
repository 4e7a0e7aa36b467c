"""What a value of a request keeps of a frozen dataclass."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

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


def test_no_field_is_set_again_or_added() -> None:
    point = Point(1)
    for name in ("x", "z"):
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(point, name, 1)
    assert "__slots__" in vars(Point)
