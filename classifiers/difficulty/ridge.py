"""Ridge regression on hashed features by conjugate gradients, in a fixed order.

The same input gives the same bytes on the same build: one thread of sparse products, a fixed
number of steps, no random start. Sources: Hestenes and Stiefel 1952; the equality with
scikit-learn's solver is a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from classifiers.difficulty.features import BUCKETS

if TYPE_CHECKING:
    from classifiers.difficulty.features import Features

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
STEPS: Final = 40


def design(features: Sequence[Features]) -> sparse.csr_matrix:
    """Rows of unit length (rows, BUCKETS): each word counts 1 / sqrt(their number)."""
    words = [one.words for one in features]
    sizes = [len(row) for row in words]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    columns = np.fromiter(chain.from_iterable(words), np.int32)
    values = np.repeat([1.0 / np.sqrt(max(size, 1)) for size in sizes], sizes)
    return sparse.csr_matrix((values, columns, starts), shape=(len(features), BUCKETS))


def fit(
    x: sparse.csr_matrix, y: Matrix, penalty: float, steps: int = STEPS
) -> tuple[Matrix, Vector]:
    """Weights (BUCKETS, heads) and means (heads,) of min |x w + m - y|^2 + penalty |w|^2.

    All heads of `y` (rows, heads) are solved at once, each with its own step lengths.
    """
    means = y.mean(axis=0)
    transposed = x.T.tocsr()
    residual = transposed @ (y - means)
    weights = np.zeros_like(residual)
    direction = residual.copy()
    size = (residual * residual).sum(axis=0)
    for _ in range(steps):
        image = transposed @ (x @ direction) + penalty * direction
        step = size / np.maximum((direction * image).sum(axis=0), 1e-30)
        weights += step * direction
        residual -= step * image
        grown = (residual * residual).sum(axis=0)
        direction = residual + (grown / np.maximum(size, 1e-30)) * direction
        size = grown
    return weights, means


def predict(x: sparse.csr_matrix, fitted: tuple[Matrix, Vector]) -> Matrix:
    """Predictions (rows, heads)."""
    predicted: Matrix = x @ fitted[0] + fitted[1]
    return predicted
