"""What every source region lists, against the catalog: `domicile regions sync`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from regions.facts import BedrockFacts


@dataclass(frozen=True, slots=True)
class Change:
    """One profile seen from one source region, and how it differs from the catalog.

    `kind` is `members` (added or removed), `new` (the catalog doesn't know the profile or the
    route) or `gone` (the catalog lists it, this region doesn't). `widened` changes are those that
    could take a call outside: everything but `gone` and mere removals.
    """

    profile: str
    source: str
    kind: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def widened(self) -> bool:
        """Whether somewhere is in it that the catalog doesn't list."""
        return bool(self.added)


def compare(
    source: str, seen: Mapping[str, tuple[str, ...]], facts: BedrockFacts
) -> tuple[Change, ...]:
    """Every difference in one source region, by profile.

    Args:
        seen: profile id → its member regions, as this source region lists them now.
    """
    found = [*_seen(source, seen, facts), *_gone(source, seen, facts)]
    return tuple(sorted(found, key=lambda change: change.profile))


def _seen(
    source: str, seen: Mapping[str, tuple[str, ...]], facts: BedrockFacts
) -> Iterator[Change]:
    for name, members in seen.items():
        if name.startswith("global."):
            if source not in facts.global_sources.get(name, ()):
                yield Change(name, source, "new", members=members)
            continue
        profile = facts.profiles.get(name)
        known = profile.routes.get(source) if profile is not None else None
        if known is None:
            yield Change(name, source, "new", added=members, members=members)
        elif set(known) != set(members):
            added = tuple(sorted(set(members) - set(known)))
            removed = tuple(sorted(set(known) - set(members)))
            yield Change(name, source, "members", added, removed, members)


def _gone(
    source: str, seen: Mapping[str, tuple[str, ...]], facts: BedrockFacts
) -> Iterator[Change]:
    for name, profile in facts.profiles.items():
        if source in profile.routes and name not in seen:
            yield Change(name, source, "gone", removed=tuple(sorted(profile.routes[source])))
