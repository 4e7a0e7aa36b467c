"""What an assessment comes to: the worst of its rows decides, and no row is no answer."""

from __future__ import annotations

from collections.abc import Iterable

from regions.footprints.question import EXIT_CODES, Judgement, Verdict

_WORST_FIRST = (Verdict.OUTSIDE, Verdict.UNKNOWN, Verdict.INSIDE)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Outside before unknown before inside; unknown when there is nothing to judge."""
    found = set(verdicts)
    return next((one for one in _WORST_FIRST if one in found), Verdict.UNKNOWN)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0 all inside, 3 something outside, 4 something unknown or nothing found."""
    return EXIT_CODES[worst(verdicts)]


def why(judgements: Iterable[Judgement]) -> str:
    """The members outside, or what is missing, over all axes."""
    texts: dict[str, None] = {}
    for one in judgements:
        if one.outside:
            texts[f"outside: {', '.join(one.outside)}"] = None
        elif one.missing:
            texts.update(dict.fromkeys(one.missing))
    return "; ".join(texts)
