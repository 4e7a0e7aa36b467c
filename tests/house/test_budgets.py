from collections.abc import Callable

import pytest

from house import budgets
from house.tree import Tree

Plant = Callable[[dict[str, str]], Tree]


def function(name: str, lines: int) -> str:
    return f"def {name}() -> None:\n" + "    print()\n" * (lines - 1)


def said(tree: Tree) -> list[str]:
    return [str(finding) for finding in budgets.findings(tree)]


def test_a_tidy_tree_has_no_findings(plant: Plant) -> None:
    assert said(plant({"router/__init__.py": "", "router/a.py": function("a", 9)})) == []


@pytest.mark.parametrize(("lines", "over"), [(400, False), (401, True)])
def test_file_length(plant: Plant, lines: int, over: bool) -> None:
    found = said(plant({"tests/long.py": "x = 1\n" * lines}))
    assert found == (["tests/long.py: has 401 lines, over 400"] if over else [])


@pytest.mark.parametrize(("lines", "over"), [(60, False), (61, True)])
def test_function_length_holds_for_tests_too(plant: Plant, lines: int, over: bool) -> None:
    found = said(plant({"tests/long.py": function("a", lines)}))
    assert found == (["tests/long.py:1: `a` has 61 lines, over 60"] if over else [])


def test_the_median_and_the_tail_are_taken_over_all_sources(plant: Plant) -> None:
    files = {f"router/short{n}.py": function("a", 2) for n in range(9)}
    assert said(plant({**files, "router/long.py": function("a", 40)})) == []
    assert said(plant({"router/longer.py": function("a", 26)})) == [
        "all sources: one function in ten has 26 lines or more, over 25"
    ]
    [finding] = said(plant({f"router/short{n}.py": function("a", 10) for n in range(9)}))[:1]
    assert finding == "all sources: median function has 10 lines, over 9"


def test_tests_do_not_count_for_the_spread(plant: Plant) -> None:
    assert said(plant({f"tests/long{n}.py": function("a", 30) for n in range(9)})) == []


@pytest.mark.parametrize(
    "text",
    [
        "def a(b: dict[str, Any]) -> None: ...",
        "def a(*, b: list[Mapping[str, Any]] | None) -> None: ...",
        "def a(**b: dict[str, typing.Any]) -> None: ...",
        "async def a() -> dict[str, Any]: ...",
        "class A:\n    b: dict[str, Any]",
        "class A:\n    def b(self, c: dict[str, Any]) -> None: ...",
        "A: dict[str, Any] = {}",
    ],
)
def test_loose_types_between_modules(plant: Plant, text: str) -> None:
    assert "use a typed class" in said(plant({"router/a.py": text}))[0]


@pytest.mark.parametrize(
    "text",
    [
        "def a(b: dict[str, object]) -> None: ...",
        "def _a(b: dict[str, Any]) -> None: ...",
        "class _A:\n    b: dict[str, Any]",
        "def a() -> None:\n    b: dict[str, Any] = {}",
    ],
)
def test_types_nobody_else_sees_are_free(plant: Plant, text: str) -> None:
    assert said(plant({"router/a.py": text})) == []


@pytest.mark.parametrize("name", ["LogManager", "HTTPHandler", "TestUtils", "SSLContext", "Info"])
def test_classes_named_for_nothing(plant: Plant, name: str) -> None:
    assert name in said(plant({"tests/test_a.py": f"class {name}: ..."}))[0]


@pytest.mark.parametrize(
    "path", ["router/helpers.py", "router/http_util.py", "router/context/a.py"]
)
def test_modules_named_for_nothing(plant: Plant, path: str) -> None:
    assert "name it for what it is" in said(plant({path: ""}))[0]


@pytest.mark.parametrize("name", ["Information", "Contextual", "Utility", "Handled"])
def test_longer_words_are_other_words(plant: Plant, name: str) -> None:
    assert said(plant({"router/a.py": f"class {name}: ..."})) == []


def test_a_package_file_is_empty(plant: Plant) -> None:
    assert said(plant({"router/__init__.py": "from router.a import b\n"})) == [
        "router/__init__.py: is not empty; import from the module itself"
    ]
