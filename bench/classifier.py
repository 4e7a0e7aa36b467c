"""Measures the difficulty classifier: `python bench/classifier.py DATA [--quick]`.

DATA is a folder of `<source>.train.jsonl.gz` and `<source>.dev.jsonl.gz` files in the row format
of `classifiers/difficulty/dataset.py`. Prints one JSON object per section; nothing is written.
What it prints stands in `classifiers/models/prior.measured.jsonl`, from which the card shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from time import thread_time_ns

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Ridge

from bench import sensitive
from classifiers.difficulty import artifact as artifacts
from classifiers.difficulty import commands, compiled, curves, dataset, evaluation
from classifiers.difficulty.artifact import SHIPPED
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.evaluation import Scores
from classifiers.difficulty.scorer import Difficulty
from classifiers.difficulty.training import train_any
from classifiers.patterns import kinds_in
from classifiers.view import PromptView

SOURCES = ("routellm_mmlu", "mmlu_pro", "llmrouter", "zeroeval")
LABELS = 1500
PIECES = re.compile(r"\w+|[^\w\s]")
DRAWS = 6
ODD = {
    "empty": "",
    "two words": "thank you",
    "Chinese": "请证明每个紧致度量空间上的连续函数都是一致连续的。" * 4,
    "Chinese, spaced": "请 证明 每个 紧致 度量 空间 上 的 连续 函数",
    "Russian": "Докажите, что всякая непрерывная функция на отрезке равномерно непрерывна.",
    "German": "Beweise, dass jede stetige Funktion auf einem Intervall gleichmäßig stetig ist.",
    "code": "def f(xs):\n    return {x: [y ** 2 for y in xs if y % x == 0] for x in xs if x}\n" * 3,
    "random letters": "zxq vbnm qwrt plkj hgfd mnbv cxzl kjhg rtyu fghj vbnx cvbn sdfg wert",
    "repeated word": "please " * 300,
    "claims to be easy": "this is easy " * 3 + "zxq vbnm qwrt plkj hgfd mnbv cxzl kjhg",
    "one million characters": "why does this happen again " * 40_000,
}


def rows(folder: Path, source: str, split: str) -> tuple[Example, ...]:
    return dataset.binary(dataset.read([folder / f"{source}.{split}.jsonl.gz"]))


@cache
def common() -> bytes:
    """How common words are, as the shipped artifact has it."""
    return artifacts.load(SHIPPED).common


def show(section: str, values: dict[str, object]) -> None:
    print(json.dumps({"section": section, **values}), flush=True)


def numbers(scores: Scores, test: Sequence[Example], draws: int) -> dict[str, object]:
    gain, groups = evaluation.gains(test), evaluation.groups_of(test)
    report = evaluation.report(scores, gain, draws, groups=groups)
    out: dict[str, object] = {"n": report.n, "gap": round(report.gap, 4)}
    for name in ("apgr", "cpt50", "cpt80"):
        one = getattr(report, name)
        out[name] = [round(one.value, 4), round(one.low, 4), round(one.high, 4)]
    for name in ("ece", "ece_debiased", "brier", "abstained", "gated"):
        out[name] = round(getattr(report, name), 4)
    return out


def against(scores: Scores, plain: np.ndarray, test: Sequence[Example], draws: int) -> list[float]:
    gain, groups = evaluation.gains(test), evaluation.groups_of(test)
    found = evaluation.difference(scores.rank, plain, gain, draws, groups=groups)
    return [round(found.value, 4), round(found.low, 4), round(found.high, 4)]


def plain(train: Sequence[Example], test: Sequence[Example]) -> Scores:
    """The plain router to beat: one ridge of scikit-learn on the signed gain, over hashed words and
    pairs of words. Its settings are the best of those tried. No probability, no abstention."""
    hashed = HashingVectorizer(
        n_features=1 << 18, ngram_range=(1, 2), alternate_sign=False, binary=True,
        token_pattern=r"\w+",
    )  # fmt: skip
    x, held = (hashed.transform([e.view.question for e in part]) for part in (train, test))
    fitted = Ridge(alpha=10.0, solver="sparse_cg", tol=1e-4).fit(x, evaluation.gains(train))
    rank = np.asarray(fitted.predict(held))
    return Scores(rank, np.full(len(rank), 0.5), np.zeros(len(rank), bool))


def all_labels(train: Sequence[Example], dev: Sequence[Example], draws: int) -> None:
    gain, base = evaluation.gains(dev), plain(train, dev).rank
    scores = evaluation.fit_and_score(train, dev, common())
    show("mmlu, all labels, dev", {
        **numbers(scores, dev, draws), "plain_apgr": round(curves.apgr(base, gain), 4),
        "difference": against(scores, base, dev, draws),
    })  # fmt: skip


def folds(rows_: Sequence[Example], draws: int) -> None:
    """Every row by models that never saw its group; the difference to the plain ridge is paired."""
    gain = evaluation.gains(rows_)
    scores = evaluation.cross_validated(rows_, partial(evaluation.fit_and_score, common=common()))
    base = evaluation.cross_validated(rows_, plain).rank
    parts = np.array([evaluation.fold(e) for e in rows_])
    apgr = [curves.apgr(scores.rank[parts == k], gain[parts == k]) for k in range(5)]
    show("mmlu, all labels, grouped 5-fold over train and dev", {
        **numbers(scores, rows_, draws), "folds": [round(a, 3) for a in apgr],
        "mean": round(float(np.mean(apgr)), 4), "spread": round(float(np.std(apgr)), 4),
        "plain_apgr": round(curves.apgr(base, gain), 4),
        "difference": against(scores, base, rows_, draws),
    })  # fmt: skip


def few_labels(train: Sequence[Example], dev: Sequence[Example], draws: int) -> None:
    """So few labels, drawn several times; measured on dev and on all other training rows."""
    found: dict[str, list[list[float]]] = {"dev": [], "other train rows": []}
    plains: dict[str, list[float]] = {name: [] for name in found}
    better: dict[str, list[list[float]]] = {name: [] for name in found}
    for seed in range(DRAWS):
        inside, outside = evaluation.draw(train, LABELS, seed)
        chosen = [train[i] for i in inside]
        tests = {"dev": dev, "other train rows": [train[i] for i in outside]}
        for name, test in tests.items():
            gain = evaluation.gains(test)
            scores = evaluation.fit_and_score(chosen, test, common())
            base = plain(chosen, test).rank
            cpts = [curves.cpt(scores.rank, gain, x) for x in (0.5, 0.8)]
            found[name].append([curves.apgr(scores.rank, gain), *cpts])
            plains[name].append(curves.apgr(base, gain))
            better[name].append(against(scores, base, test, draws))
    for name, kept in found.items():
        mean, spread = np.mean(kept, axis=0).round(4), np.std(kept, axis=0).round(4)
        show(f"mmlu, {LABELS} labels, {name}", {
            "draws": DRAWS, "apgr": mean[0], "cpt50": mean[1], "cpt80": mean[2],
            "spread": spread.tolist(), "plain_apgr": round(float(np.mean(plains[name])), 4),
            "differences": better[name],
        })  # fmt: skip


def left_out(by_source: dict[str, list[Example]], draws: int) -> None:
    for source, test in by_source.items():
        others = [e for name, part in by_source.items() if name != source for e in part]
        model = evaluation.as_artifact(train_any(others, common()), common())
        show(f"left out: {source}, by the model of any pair", numbers(
            evaluation.score(model, test), test, draws,
        ))  # fmt: skip


def calibration(shipped: artifacts.Artifact, folder: Path, draws: int) -> None:
    for source in SOURCES:
        dev = rows(folder, source, "dev")
        show(f"shipped on dev: {source}", numbers(
            evaluation.score(shipped, dev), dev, draws
        ))  # fmt: skip
        errors = []
        for seed in range(DRAWS):
            inside, outside = evaluation.draw(dev, 200, seed)
            held = [dev[i] for i in outside]
            if len(held) >= 200:
                local = commands.calibrated(shipped, [dev[i] for i in inside])
                scores = evaluation.score(local, held)
                errors.append(evaluation.report(scores, evaluation.gains(held), 2).ece_debiased)
        if errors:
            show(f"after 200 local labels: {source}", {
                "ece_debiased": round(float(np.mean(errors)), 4), "worst": round(max(errors), 4),
            })  # fmt: skip


def gates(shipped: artifacts.Artifact, test: Sequence[Example]) -> None:
    difficulty = Difficulty(shipped, test[0].weak, test[0].strong)
    reasons = {name: difficulty.score(PromptView.of_text(t)).reason for name, t in ODD.items()}
    scores = evaluation.score(shipped, test)
    cut = float(np.quantile(scores.rank, 0.5))
    show("gate", {
        "reasons": reasons, "abstained_in_domain": round(float(scores.abstained.mean()), 4),
        "false_easy_at_half": round(evaluation.false_easy(scores, evaluation.gains(test), cut), 4),
    })  # fmt: skip


def timings(call: Callable[[], object], repeat: int) -> dict[str, float]:
    """CPU time of this thread: what other processes do to the clock on the wall is not counted.

    What they do to caches and clock rate is: `least` shows the code, `p99` the machine as well.
    """
    spent = []
    for _ in range(repeat):
        started = thread_time_ns()
        call()
        spent.append(thread_time_ns() - started)
    least, p50, p99 = np.quantile(spent, (0.0, 0.5, 0.99)) / 1000
    return {
        "least_us": round(float(least), 1), "p50_us": round(float(p50), 1),
        "p99_us": round(float(p99), 1),
    }  # fmt: skip


def over_prompts(
    call: Callable[[PromptView], object], views: Sequence[PromptView], passes: int
) -> dict[str, float]:
    """CPU time of each of many different prompts, again and again.

    `p50_us` and `p99_us` are over prompts, of the least time that each took: what the code costs
    for ordinary and for dear prompts. `raw_p99_us` is over all calls, with what the machine's
    other work costs. No prompt is in a cache when its turn comes again.
    """
    spent = np.zeros((passes, len(views)))
    for row in spent:
        for number, view in enumerate(views):
            started = thread_time_ns()
            call(view)
            row[number] = thread_time_ns() - started
    p50, p99, most = np.quantile(spent.min(axis=0), (0.5, 0.99, 1.0)) / 1000
    return {
        "p50_us": round(float(p50), 1), "p99_us": round(float(p99), 1),
        "dearest_us": round(float(most), 1),
        "raw_p99_us": round(float(np.quantile(spent, 0.99)) / 1000, 1),
    }  # fmt: skip


def prompts(prose: str, tokens: int, count: int) -> list[PromptView]:
    """Different texts of so many words and marks: no fewer tokens for any usual tokenizer."""
    places = [found.span() for found in PIECES.finditer(prose)]
    first = np.linspace(0, len(places) - tokens - 1, count).astype(int)
    return [PromptView.of_text(prose[places[i][0] : places[i + tokens - 1][1]]) for i in first]


def drained(text: str) -> list[str]:
    return list(kinds_in(text))


def loop() -> int:
    total = 0
    for i in range(1000):
        total += i * i
    return total


def latency(shipped: artifacts.Artifact, test: Sequence[Example], repeat: int) -> None:
    library, said = compiled.find()
    pair = test[0].weak, test[0].strong
    slow, fast = Difficulty(shipped, *pair), Difficulty(shipped, *pair, library)
    prose = "\n".join(e.view.question for e in test)
    show("machine", {
        "reference_loop": timings(loop, repeat), "clock": timings(int, repeat),
        "load": os.getloadavg(), "scorer": said, "python": sys.version.split()[0],
        "optimised_build": "--enable-optimizations" in str(sysconfig.get_config_var("CONFIG_ARGS")),
    })  # fmt: skip
    for tokens in (50, 500, 5000):
        views = prompts(prose, tokens, 1000)
        passes = repeat // 250
        show(f"latency, {tokens} tokens, 1,000 prompts, least of {passes} times each", {
            "python": over_prompts(slow.score, views, passes),
            "compiled": over_prompts(fast.score, views, passes) if library else said,
        })  # fmt: skip
    view = PromptView.of_text((prose * 2)[:1_000_000])
    show("latency, one prompt of a million characters", {
        "python": timings(partial(slow.score, view), repeat // 5),
        "compiled": timings(partial(fast.score, view), repeat // 5) if library else said,
    })  # fmt: skip
    path = SHIPPED
    model = artifacts.load(path)
    show("artifact", {
        "bytes": path.stat().st_size, "version": model.version(),
        "load": timings(lambda: artifacts.load(path), 20),
        "unpack": timings(lambda: Difficulty(model, *pair, library), 20),
    })  # fmt: skip


def patterns(test: Sequence[Example], repeat: int) -> None:
    prose = " ".join(e.view.question for e in test)
    parts = [prose[at : at + 2000] for at in range(0, 100_000, 2000)]
    marked = [part.replace("'", "\u2019").replace(", ", " \u2014 ")[:2000] for part in parts]
    for what, texts in (("", parts), (" with typographic marks", marked)):
        every = [timings(partial(drained, text), max(20, repeat // 100)) for text in texts]
        least, middle = ([one[key] for one in every] for key in ("least_us", "p50_us"))
        show(f"patterns, 500 tokens, 50 texts{what}", {
            "least_us": round(float(np.median(least)), 1), "dearest_least_us": max(least),
            "p50_us": round(float(np.median(middle)), 1), "dearest_p50_us": max(middle),
        })  # fmt: skip
    show("patterns, synthetic set", dict(sensitive.measured(sensitive.rows(each=100))))


def repeats(shipped: artifacts.Artifact, folder: Path) -> None:
    """The recipe, run here: are these the bytes that are shipped?"""
    files = [folder / f"{s}.{part}.jsonl.gz" for s in SOURCES for part in ("train", "dev")]
    with tempfile.TemporaryDirectory() as made:
        commands.train(files, Path(made) / "prior.bin", "prior", prior=True)
        same = (Path(made) / "prior.bin").read_bytes() == SHIPPED.read_bytes()
    show("recipe", {"same_bytes": same, "built_on": shipped.card["build"]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--quick", action="store_true", help="fewer bootstrap draws, no training")
    asked = parser.parse_args()
    draws, repeat = (100, 500) if asked.quick else (1000, 5000)
    shipped = artifacts.load(SHIPPED)
    dev = rows(asked.data, "routellm_mmlu", "dev")
    latency(shipped, dev, repeat)
    patterns(dev, repeat)
    gates(shipped, dev)
    calibration(shipped, asked.data, draws)
    if asked.quick:
        return
    repeats(shipped, asked.data)
    train = rows(asked.data, "routellm_mmlu", "train")
    all_labels(train, dev, draws)
    few_labels(train, dev, draws)
    folds([*train, *dev], draws)
    left_out(
        {s: [*rows(asked.data, s, "train"), *rows(asked.data, s, "dev")] for s in SOURCES}, draws
    )


if __name__ == "__main__":
    main()
