"""A new difficulty artifact in the place of the one in use, when it is surely better.

The file that a policy's `grading: {model: "file:..."}` names is replaced as a whole, so that a
router that watches its files takes the new one at its next look. The one before stays beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from classifiers.difficulty.artifact import SHIPPED, load, put
from classifiers.difficulty.commands import Comparison, compare

BEFORE: Final = ".before"


class NotActivated(Exception):
    """The new artifact can't take the place of the one in use; says why."""


def activate(new: Path, used: Path, files: Sequence[Path]) -> tuple[Comparison, Path]:
    """Replace the artifact `used` by `new`; return what was compared, and where the old one is.

    Raises:
        NotBetter: it is not surely better; nothing was written.
        NotActivated: the artifact in use is the shipped one, or changed in the meantime.
        ArtifactError, RowError, TooFewRows, OSError: as `compare`, or it can't be written.
    """
    target = used.resolve()
    if target == SHIPPED.resolve():
        raise NotActivated(
            "the shipped prior is never replaced: compare without --activate, and name the new "
            'file in the policy (`grading: {model: "file:..."}`)'
        )
    found = compare(new, target, files, activate=True)
    if load(target).version() != found.used.version():
        raise NotActivated(f"`{used}` was changed meanwhile: compare again")
    kept = target.with_name(target.name + BEFORE)
    put(kept, found.used.encode(), target)
    put(target, found.new.encode(), target)
    return found, kept
