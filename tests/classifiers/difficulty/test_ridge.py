"""The solver gives scikit-learn's ridge, and the same bytes each time."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from classifiers.difficulty import ridge
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.features import extract
from classifiers.view import PromptView


def test_rows_have_unit_length_and_empty_texts_are_empty(examples: list[Example]) -> None:
    features = [e.features for e in examples[:20]] + [extract(PromptView.of_text(""))]
    x = ridge.design(features)
    lengths = np.asarray(x.multiply(x).sum(axis=1)).ravel()
    assert np.allclose(lengths[:20], 1)
    assert lengths[20] == 0


def test_equal_to_scikit_learn(examples: list[Example]) -> None:
    x = ridge.design([e.features for e in examples])
    y = np.array([(e.y_weak, e.y_strong) for e in examples])
    weights, means = ridge.fit(x, y, penalty=5.0, steps=200)
    for head in range(2):
        other = Ridge(alpha=5.0, solver="sparse_cg", fit_intercept=False, tol=1e-12)
        other.fit(x, y[:, head] - means[head])
        assert np.allclose(weights[:, head], other.coef_, atol=1e-8)


def test_same_input_same_bytes(examples: list[Example]) -> None:
    x = ridge.design([e.features for e in examples])
    y = np.array([(e.y_weak, e.y_strong) for e in examples])
    first, second = ridge.fit(x, y, 5.0), ridge.fit(x, y, 5.0)
    assert first[0].tobytes() == second[0].tobytes()
