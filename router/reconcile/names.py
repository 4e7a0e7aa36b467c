"""Names of one thing in several spellings, as the log and a provider write them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_SPEAKING: Final = (":foundation-model/", ":inference-profile/")
_ASSUMED: Final = ":assumed-role/"
_PARTITIONS: Final = {
    "us-gov-": "aws/aws-us-gov",
    "cn-": "aws/aws-cn",
    "us-iso": "aws/aws-iso",
    "eu-iso": "aws/aws-iso",
    "eusc-": "aws/aws-eusc",
}


def model(name: str) -> str:
    """A model's or profile's id, out of an ARN that speaks it; any other name as it is."""
    arn = name.startswith("arn:") and any(part in name for part in _SPEAKING)
    return name.rpartition("/")[2] if arn else name


def principal(name: str) -> str:
    """Who called, without the session of an assumed role, which changes with each machine."""
    return name.rpartition("/")[0] if _ASSUMED in name and name.count("/") > 1 else name


def covers(places: Collection[str], place: str) -> bool:
    """Whether a list of place ids, as the log has them, holds a region.

    An open end (`elsewhere:aws`) holds every region of its partition.
    """
    return place in places or f"elsewhere:{_partition(place)}" in places


def _partition(place: str) -> str:
    provider, _, name = place.partition(":")
    found = (p for start, p in _PARTITIONS.items() if provider == "aws" and name.startswith(start))
    return next(found, provider)
