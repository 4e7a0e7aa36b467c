"""Answers about footprints, as JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regions.footprints.question import Answer, Judgement
    from regions.model import Fact, Footprint
    from regions.places import PlaceSet


def answer_json(answer: Answer) -> dict[str, object]:
    """One answer: verdict, the three axes, what is missing, and every fact with its source."""
    found = answer.footprint
    return {
        "selector": answer.endpoint.name,
        "verdict": answer.verdict.value if answer.judgements else None,
        "process": list(found.process.ids),
        "retain": _retained(found),
        "operate": list(found.operate.codes),
        "judgements": [judgement_json(one) for one in answer.judgements],
        "missing": [{"axis": axis.value, "what": what} for axis, what in found.gaps],
        "facts": [_fact_json(fact) for fact in found.facts],
        "aged": [fact.statement for fact in answer.aged],
        "good_until": None if found.good_until is None else _day(found.good_until),
    }


def judgement_json(one: Judgement) -> dict[str, object]:
    """One axis against one boundary."""
    return {
        "axis": one.axis.value,
        "within": one.boundary,
        "verdict": one.verdict.value,
        "outside": list(one.outside),
        "missing": list(one.missing),
    }


def places_text(places: PlaceSet) -> str:
    """Places by country, one country a line: `DE  aws:eu-central-1`."""
    groups: dict[str, list[str]] = {}
    for atom in places:
        groups.setdefault(getattr(atom, "country", "??"), []).append(_named(atom.id))
    return "\n".join(f"{country}  {', '.join(sorted(ids))}" for country, ids in _by(groups))


def places_short(places: PlaceSet) -> str:
    """Places in few words: `aws:eu-west-1 eu-west-3; somewhere of mistral in AT BE`."""
    groups: dict[str, list[str]] = {}
    for atom in sorted(places, key=lambda atom: atom.id):
        kind, _, rest = atom.id.partition(":")
        if kind == "area":
            partition, _, country = rest.rpartition(":")
            groups.setdefault(f"somewhere of {partition} in ", []).append(country)
        elif kind == "elsewhere" or not rest:
            groups.setdefault(_named(atom.id), [])
        else:
            groups.setdefault(f"{kind}:", []).append(rest)
    return "; ".join(start + " ".join(names) for start, names in groups.items())


def retain_text(found: Footprint) -> str:
    """What is kept and where, in words."""
    if found.retain.is_nothing:
        return "nothing"
    return places_text(found.retain.places(found.process.atlas))


def fact_lines(facts: Sequence[Fact]) -> Iterator[tuple[str, str, str, str]]:
    """Axis, statement, source and the day checked, fact by fact, each once."""
    for fact in dict.fromkeys(facts):
        yield fact.axis.value, fact.statement, fact.source, fact.checked_on or "-"


def aged_lines(facts: Sequence[Fact]) -> Iterator[str]:
    """The facts that are too old to rely on, a line each."""
    for fact in dict.fromkeys(facts):
        until = "" if fact.until is None else f" since {_day(fact.until)}"
        yield f"too old{until}, so unknown: {fact.statement} (checked on {fact.checked_on or '-'})"


def reason(one: Judgement) -> str:
    """Why an axis is not inside: the members outside, or what is missing."""
    if one.outside:
        return "outside: " + ", ".join(one.outside)
    return "missing: " + "; ".join(one.missing) if one.missing else ""


def _retained(found: Footprint) -> str | list[str]:
    if found.retain.is_nothing:
        return "nothing"
    return list(found.retain.places(found.process.atlas).ids)


def _fact_json(fact: Fact) -> dict[str, object]:
    return {
        "axis": fact.axis.value,
        "statement": fact.statement,
        "source": fact.source,
        "checked_on": fact.checked_on or None,
        "until": None if fact.until is None else _day(fact.until),
    }


def _day(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _named(place_id: str) -> str:
    kind, _, rest = place_id.partition(":")
    if kind == "elsewhere":
        return f"anywhere of {rest}, members may be added"
    if kind == "area":
        return f"somewhere of {rest.rpartition(':')[0]}"
    return place_id


def _by(groups: dict[str, list[str]]) -> list[tuple[str, list[str]]]:
    return sorted(groups.items(), key=lambda item: (item[0] == "??", item[0]))
