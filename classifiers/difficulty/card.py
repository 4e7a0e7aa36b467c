"""The model card: what an artifact was made of, how well it does, and where it must not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from classifiers.difficulty.artifact import ANY, Artifact, PairModel

_LIMITS = """\
- It ranks prompts for the pairs below. Pairs do not transfer: for others the model `*` gives an
  order that is little better than chance, and its probabilities mean nothing there.
- Outside of what its training rows were like the gate abstains and the request goes to the large
  tier. The prior's are single English exam questions, short code and competition mathematics:
  conversations, tools, JSON schemas and other scripts need a model trained on local outcomes.
- It reads the last user message: the first and last 400 characters. Scores of longer ones say so
  (`cut`); beyond twelve times that it abstains.
- Words decide. Someone who writes the prompt can move the score in both directions. It is never
  used to allow a place, and policy floors and forced tiers stand above it.
- Labels are what the judge of its rows said: of the prior's, exact match in one run each. They say
  nothing about what the judge did not look at, such as style or safety."""


def render(
    artifact: Artifact, scorer: str = "", measured: Sequence[Mapping[str, object]] = ()
) -> str:
    """The card of an artifact in Markdown.

    `scorer` says what scores on this machine; `measured` are sections that the benchmark printed.
    """
    facts = artifact.card
    return "\n".join(
        [
            f"# Difficulty model `{artifact.version()}`", "",
            f"Kind: {_kind(facts)}. Hashed features and rounded weights only:", "it holds no text.",
            "",
            "## Data", "", *_data(facts), "", "## Pairs", "", *_pairs(artifact), "",
            "APGR, CPT50 and CPT80 are of training rows, each scored by a head fitted without it",
            "over base models fitted without its group. APGR is the share of the gap between weak",
            "and strong that is recovered, mean over all shares of strong calls (random: 0.5);",
            "CPT50 and CPT80 are the least share of strong calls that recovers 50 and 80 % of it.",
            *_held(facts), *_measured(measured), "", "## Limits", "", _LIMITS, "",
            "## Build", "", *_build(facts),
            *(["", f"Scorer on this machine: {scorer}."] if scorer else []), "",
        ]
    )  # fmt: skip


def _kind(facts: Mapping[str, object]) -> str:
    if facts.get("prior"):
        return "prior, not trained on your traffic"
    labels = _table(facts.get("labels"))
    if not labels:
        return "trained locally"
    told = ", ".join(f"{count} of `{source}`" for source, count in labels.items())
    return (
        f"calibrated locally, on labels: {told}. Its order is that of "
        f"`{facts.get('calibrated_from')}`, of which are the data, APGR, CPT50 and CPT80 below"
    )


def _data(facts: Mapping[str, object]) -> list[str]:
    sources, licences = _table(facts.get("sources")), _table(facts.get("licences"))
    lines = ["| source | rows | licence |", "|---|---|---|"]
    return lines + [f"| {s} | {n} | {licences.get(s, '')} |" for s, n in sources.items()]


def _pairs(artifact: Artifact) -> list[str]:
    measured = _table(artifact.card.get("left_out"))
    lines = ["| weak → strong | rows | APGR | CPT50 | CPT80 |", "|---|---|---|---|---|"]
    for name in sorted(artifact.pairs):
        numbers = _table(measured.get(name))
        lines.append(
            f"| {_label(artifact.pairs[name])} | {artifact.pairs[name].rows} | "
            f"{numbers.get('apgr', '')} | {numbers.get('cpt50', '')} | {numbers.get('cpt80', '')} |"
        )
    return lines


def _held(facts: Mapping[str, object]) -> list[str]:
    """Measurements of rows that were kept back, where the training files had some."""
    held = _table(facts.get("held"))
    if not held:
        return []
    lines = [
        "", "### Kept-back rows", "",
        "| weak:strong | n | APGR | CPT50 | CPT80 | debiased ECE | abstained |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, value in held.items():
        found = _table(value)
        cells = [_cell(found.get(key)) for key in ("n", "apgr", "cpt50", "cpt80")]
        cells += [_cell(found.get(key)) for key in ("ece_debiased", "abstained")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, "", "In brackets: 95 % of bootstrap draws."]


def _measured(sections: Sequence[Mapping[str, object]]) -> list[str]:
    """What the benchmark found; times are microseconds of CPU on the machine it ran on."""
    if not sections:
        return []
    lines = ["", "## Benchmark", "", "Printed by `bench/classifier.py` of this very artifact.", ""]
    for one in sections:
        found = [f"{name} {_plain(value)}" for name, value in one.items() if name != "section"]
        lines.append(f"- **{one['section']}**: {'; '.join(found)}")
    return lines


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return f"[{', '.join(_plain(inner) for inner in value)}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(value: object) -> str:
    if not isinstance(value, list | tuple):
        return str(value)
    middle, low, high = value
    return f"{middle} [{low}, {high}]"


def _label(pair: PairModel) -> str:
    return "`*` (any other pair)" if pair.name == ANY else f"{pair.weak} → {pair.strong}"


def _build(facts: Mapping[str, object]) -> list[str]:
    build = _table(facts.get("build"))
    named = ", ".join(f"{name} {value}" for name, value in build.items())
    what = "What it was calibrated from repeats" if facts.get("labels") else "Repeats"
    return [f"{what} byte for byte on: {named}, with the locked dependencies."]


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
