"""A model with two tiers, graded, beside the files of `built`."""

from __future__ import annotations

from tests.cases.built import BASELINE, Files

EASY = "What is the capital city of the large country called France ?"
HARD = (
    "Consider a compact manifold with bounded curvature and a sequence of harmonic maps on it. "
    "Which of the following statements about the limit of the energies holds in general, and "
    "which of the usual conditions on the target space can be weakened without losing it ?\n"
    "A. The energies are bounded by the area\nB. The limit is attained on a set of measure zero\n"
    "C. The sequence converges strongly away from a finite set of points\nD. None of the above "
    "holds unless the fundamental group of the target space is finite and the maps are smooth"
)
CHINESE = "请 解释 一下 为什么 天空 是 蓝色 的 以及 海洋 为什么 是 咸 的 谢谢"


def files(
    grade: str = "on",
    grading: str = "{strong_share: 0.5, accept_prior: true}",
    tenants: str = "",
    rules: str = "",
) -> Files:
    """Small in France, large in Germany (and in the United States)."""
    model = (
        f'  two: {{grade: "{grade}", grading: {grading}, '
        "tiers: {small: [par], large: [fra, iad]}}\n"
    )
    baseline = BASELINE.replace("models:\n", "models:\n" + model)
    if tenants:
        baseline = baseline.replace("  eu: {grant: {process: EU, retain: EU}}\n", tenants)
    return Files(baseline=baseline, rules=f"version: 1\nrules:\n{rules or '  []'}\n")
