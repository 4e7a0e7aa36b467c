"""Whatever stands in a file: a policy or errors with their places, never another exception."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random

from policies.cases import Suite, run
from policies.gathered import PolicyFile
from policies.loader import load
from regions.document import Document, DocumentErrors, Tree

LIBRARY = Path(__file__).resolve().parents[2] / "policies" / "library"
JUNK: tuple[Tree, ...] = (
    "", "EU", "any", "worldwide - US", "x" * 300, "-1", "nan", "2027-01-01", "true", "a:b:c", "((",
    "\x00", "🏠", [], {}, [[]], ["EU", {}], {"until": "2027-01-01"}, {"plus": []}, {"not": {}},
    {"all": []}, {"country": ["DE"]}, [["a"], "b"], {"": ""}, {"otherwise": "EU"}, {"within": {}},
)  # fmt: skip


def paths(tree: Tree) -> list[tuple[dict[str, Tree] | list[Tree], str | int]]:
    """Every place in a tree, as a container and a key."""
    found: list[tuple[dict[str, Tree] | list[Tree], str | int]] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            found += [(node, key) for key in node]
            pending += node.values()
        elif isinstance(node, list):
            found += [(node, n) for n in range(len(node))]
            pending += node
    return found


def spoiled(tree: Tree, rnd: Random) -> Tree:
    """The tree with one to three parts replaced, removed, renamed or doubled."""
    tree = copy.deepcopy(tree)
    for _ in range(rnd.randint(1, 3)):
        places = paths(tree)
        if not places:
            break
        node, key = rnd.choice(places)
        how = rnd.randrange(4)
        if isinstance(node, dict) and isinstance(key, str):
            if how == 0:
                node.pop(key)
            elif how == 1:
                node[rnd.choice(("x", key + "x", key[:-1]))] = node.pop(key)
            else:
                node[key] = copy.deepcopy(rnd.choice(JUNK))
        elif isinstance(node, list) and isinstance(key, int):
            node[key] = copy.deepcopy(rnd.choice(JUNK))
    return tree


def test_policies() -> None:
    rnd = Random(20261201)
    trees = {
        path.name: Document.parse(path.read_bytes(), path.name).tree
        for path in sorted(LIBRARY.glob("*.yaml"))
        if not path.name.endswith(".cases.yaml")
    }
    refused: list[tuple[str, DocumentErrors]] = []
    for n in range(400):
        name, tree = rnd.choice(sorted(trees.items()))
        text = json.dumps(spoiled(tree, rnd), ensure_ascii=False)
        file = PolicyFile(f"{n}-{name}", text.encode())
        try:
            load([file]) if n % 4 else load([], [file])
        except DocumentErrors as problem:
            refused.append((f"{n}-{name}:", problem))
    assert 200 < len(refused) < 400
    assert all(str(e).startswith(where) for where, found in refused for e in found.errors)


def test_cases() -> None:
    rnd = Random(20261202)
    refused: list[DocumentErrors] = []
    for path in sorted(LIBRARY.glob("*.cases.yaml")):
        policy = LIBRARY / f"{path.name.removesuffix('.cases.yaml')}.yaml"
        loaded = load([PolicyFile(policy.name, policy.read_bytes())])
        tree = Document.parse(path.read_bytes(), path.name).tree
        for _ in range(10):
            text = json.dumps(spoiled(tree, rnd), ensure_ascii=False)
            try:
                suite = Suite.parse(text, path.name)
            except DocumentErrors as problem:
                refused.append(problem)
            else:
                run(loaded, suite)
    assert refused
    assert all(found.errors for found in refused)
