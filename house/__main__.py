"""`python -m house`: every check of the house that ruff, mypy and import-linter don't make."""

from __future__ import annotations

import sys
from pathlib import Path

from house import budgets, documents, effects, forbidden, mirrors, outbound
from house.tree import Tree

CHECKS = {
    "budgets": budgets.findings,
    "mirrors": mirrors.findings,
    "outbound": outbound.findings,
    "forbidden": forbidden.findings,
    "effects": effects.findings,
    "documents": documents.findings,
}


def main() -> int:
    """Run the checks named by the arguments, or all; 1 when one finds something."""
    tree = Tree(Path(__file__).resolve().parent.parent)
    total = 0
    for name in sys.argv[1:] or CHECKS:
        found = sorted(CHECKS[name](tree))
        total += len(found)
        print(f"{name}: {len(found) or 'ok'}")
        for finding in found:
            print(f"  {finding}")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
