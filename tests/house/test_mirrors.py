from collections.abc import Callable

import pytest

from house import mirrors
from house.tree import Tree

Plant = Callable[[dict[str, str]], Tree]

DOES = "def a() -> int:\n    return 1\n"
DECLARES = 'class A:\n    """Says."""\n    b: int\n    def c(self) -> int: ...\n'


def said(tree: Tree) -> list[str]:
    return [str(finding) for finding in mirrors.findings(tree)]


def test_a_mirrored_source_is_fine(plant: Plant) -> None:
    assert said(plant({"router/audit/tree.py": DOES, "tests/router/audit/test_tree.py": ""})) == []


def test_a_source_without_its_test(plant: Plant) -> None:
    files = {"router/audit/tree.py": DOES, "tests/router/test_tree.py": ""}
    assert said(plant(files)) == [
        "router/audit/tree.py: has no test; write tests/router/audit/test_tree.py",
        "tests/router/test_tree.py: mirrors no source file",
    ]


def test_a_source_that_only_declares_needs_none_but_may_have_one(plant: Plant) -> None:
    assert said(plant({"router/types.py": DECLARES})) == []
    assert said(plant({"tests/router/test_types.py": ""})) == []


def test_a_split_test_belongs_to_the_longest_name(plant: Plant) -> None:
    files = {
        "router/tree.py": DOES,
        "router/tree_proofs.py": DOES,
        "tests/router/test_tree_proofs_deep.py": "",
    }
    assert said(plant(files)) == ["router/tree.py: has no test; write tests/router/test_tree.py"]


def test_tests_beside_the_mirror_are_free(plant: Plant) -> None:
    assert said(plant({"tests/laws/test_order.py": "", "tests/test_whole.py": ""})) == []


def test_an_exception_with_its_reason(plant: Plant) -> None:
    reason = "driven whole by tests/e2e"
    files = {"router/a.py": DOES, "house/unmirrored.txt": f"# why\n\nrouter/a.py: {reason}\n"}
    assert said(plant(files)) == []


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("router/a.py:", "say where `router/a.py` is tested"),
        ("router/a.py: later", "say where `router/a.py` is tested"),
        ("router/gone.py: driven whole by tests/e2e", "`router/gone.py` needs no exception"),
        ("router/b.py: driven whole by tests/e2e", "`router/b.py` needs no exception"),
    ],
)
def test_an_exception_that_does_not_hold(plant: Plant, line: str, finding: str) -> None:
    files = {"router/a.py": DOES, "router/b.py": DOES, "tests/router/test_b.py": ""}
    found = said(plant({**files, "house/unmirrored.txt": line}))
    assert any(finding in one for one in found)
