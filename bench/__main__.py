"""`python -m bench`: the measurements there are; `python -m bench NAME [ARGUMENT...]` runs one."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

_PARTS = frozenset({"__init__", "__main__", "load", "machine", "peers", "streams", "world"})


def names() -> list[str]:
    """Every measurement, by the name of its file."""
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in _PARTS)


def first_line(name: str) -> str:
    """What a measurement says it is, read without importing it."""
    text = (Path(__file__).parent / f"{name}.py").read_text()
    return text.split('"""', 2)[1].strip().splitlines()[0] if '"""' in text else ""


def main(arguments: list[str]) -> int:
    """Run one, or list them."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m bench NAME [ARGUMENT...]; NAME --help tells of one\n")
        for name in names():
            print(f"{name:12} {first_line(name)}")
        return 0
    name, *rest = arguments
    if name not in names():
        print(f"no measurement `{name}`; there are {', '.join(names())}", file=sys.stderr)
        return 2
    sys.argv = [name, *rest]
    runpy.run_module(f"bench.{name}", run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
