"""Two footprints as one: a call that is processed in two places is in both, on every axis."""

from __future__ import annotations

from dataclasses import replace

from regions.model import Footprint, Retention


def joined(one: Footprint, other: Footprint) -> Footprint:
    """Both footprints together, with the facts of the first; what is missing for either is
    missing."""
    ends = [end for end in (one.good_until, other.good_until) if end is not None]
    source = one.retain.source if one.retain.mask else other.retain.source
    return replace(
        one,
        process=one.process | other.process,
        retain=Retention(one.retain.mask | other.retain.mask, source or one.retain.source),
        operate=one.operate | other.operate,
        missing=tuple(dict.fromkeys((*one.missing, *other.missing))),
        gaps=tuple(dict.fromkeys((*one.gaps, *other.gaps))),
        good_until=min(ends, default=None),
    )
