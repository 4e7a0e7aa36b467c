import subprocess
from collections.abc import Callable
from pathlib import PurePosixPath

from house.tree import Finding, Tree

Plant = Callable[[dict[str, str]], Tree]


def test_a_tree_without_git_is_walked_without_hidden_folders(plant: Plant) -> None:
    tree = plant({"router/a.py": "", ".venv/b.py": "", "router/__pycache__/c.py": ""})
    assert tree.files == (PurePosixPath("router/a.py"),)


def test_a_git_tree_shows_tracked_and_new_files_but_no_ignored_or_deleted_ones(
    plant: Plant,
) -> None:
    tree = plant({".gitignore": "out/\n", "router/a.py": "", "router/gone.py": "", "out/b.py": ""})
    for command in (["init", "-q"], ["add", "router"]):
        subprocess.run(["git", *command], cwd=tree.root, check=True)
    (tree.root / "router/gone.py").unlink()
    (tree.root / "router/new.py").touch()
    assert [str(path) for path in tree.files] == [".gitignore", "router/a.py", "router/new.py"]


def test_only_the_four_packages_are_sources(plant: Plant) -> None:
    tree = plant({"router/a.py": "", "tests/test_a.py": "", "docs/x.py": "", "regions/b.py": ""})
    assert [source.module for source in tree.sources] == ["regions.b", "router.a"]
    assert [source.module for source in tree.python] == ["regions.b", "router.a", "tests.test_a"]


def test_a_package_has_the_name_of_its_folder(plant: Plant) -> None:
    [source] = plant({"router/audit/__init__.py": ""}).sources
    assert (source.module, source.package) == ("router.audit", "router")


def test_a_finding_without_a_line_names_only_the_file() -> None:
    assert str(Finding("a.py", 0, "is long")) == "a.py: is long"
    assert str(Finding("a.py", 7, "is long")) == "a.py:7: is long"
