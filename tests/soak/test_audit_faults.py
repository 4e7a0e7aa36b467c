"""The region log against 10,000 faults, 10,000 clean lives, and whoever holds the keys.

Prints a summary; the last one stands in `docs/region-log.md`. A small version of each is in
`tests/router/audit/test_verify.py`. `DOMICILE_SOAK=2500 DOMICILE_SOAK_FIRST=5000` does a part of
it: so many, from that seed on.
"""

import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.router.audit.damage import Gallery, caught, damaged, lived, shown

COUNT = int(os.environ.get("DOMICILE_SOAK", "10000"))
FIRST = int(os.environ.get("DOMICILE_SOAK_FIRST", "0"))
EACH = 500
FORGERS = max(1, COUNT // 200)


def say(*lines: str) -> None:
    sys.stdout.write("\n".join(["", *lines, ""]))


@pytest.mark.soak
async def test_random_single_faults(tmp_path: Path) -> None:
    seen: Counter[tuple[str, bool]] = Counter()
    for number in range(FIRST // EACH, (FIRST + COUNT) // EACH):
        root = tmp_path / str(number)
        root.mkdir()
        gallery = await Gallery.of(root, number, Random(number).choice([1200, 2000, 3000]))
        seen += damaged(gallery, Random(number), EACH)
        shutil.rmtree(root)
    below = sum(count for (_, covered), count in seen.items() if covered)
    say(f"{seen.total()} single faults, {below} below what was held: all found, places named",
        *shown(seen))  # fmt: skip
    assert below > COUNT / 3


@pytest.mark.soak
async def test_clean_logs(tmp_path: Path) -> None:
    for seed in range(FIRST, FIRST + COUNT):
        root = tmp_path / str(seed)
        root.mkdir()
        verdict = await lived(root, seed)
        assert verdict.ok, (seed, verdict.all_findings)
        shutil.rmtree(root)
    say(f"{COUNT} clean logs: no alarm")


@pytest.mark.soak
async def test_whoever_holds_the_keys(tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for seed in range(FORGERS):
        root = tmp_path / str(seed)
        root.mkdir()
        found += await caught(root, seed)
        shutil.rmtree(root)
    say(f"{FORGERS} forgers of each kind, consistent in themselves; contradicted by what was held:",
        *(f"{name}: {count} times" for name, count in sorted(found.items())))  # fmt: skip
