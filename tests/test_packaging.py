"""An installation without this checkout holds every file that the packages read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.source_tree import ROOMS, ROOT
from tests.test_docs import tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DATA: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]


def folder(package: str) -> Path:
    return ROOT / package.replace(".", "/")


def shipped() -> set[Path]:
    """Data files by setuptools's own rule: globs relative to their package, `**` for any depth."""
    return {path for package, globs in DATA.items() for glob in globs for path in folder(package).glob(glob)}


def data_files() -> set[Path]:
    """Tracked files of the packages that are neither modules nor pages."""
    inside = [path for path in tracked() if path.relative_to(ROOT).parts[0] in ROOMS]
    return {path for path in inside if path.suffix not in (".py", ".md")}


def test_every_data_file_is_shipped() -> None:
    assert data_files()
    missing = sorted(str(path.relative_to(ROOT)) for path in data_files() - shipped())
    assert not missing, f"pyproject.toml, package-data: no pattern for {missing}"


def test_the_demo_s_experiment_is_shipped_and_the_one_that_documents_name() -> None:
    from farm.demo import SPEC

    assert SPEC in shipped()
    assert (ROOT / "experiments" / "first.yaml").samefile(SPEC)


@pytest.mark.parametrize("package", DATA)
def test_patterns_belong_to_a_package_and_match(package: str) -> None:
    assert (folder(package) / "__init__.py").is_file(), "setuptools looks for patterns of packages only"
    dead = [glob for glob in DATA[package] if not any(folder(package).glob(glob))]
    assert not dead


def test_every_folder_with_modules_is_a_package() -> None:
    """`packages.find` skips a folder without `__init__.py`, silently."""
    parts = PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.rstrip("*") for name in parts} == set(ROOMS)
    modules = [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in ROOMS]
    assert {path.parent for path in modules if not (path.parent / "__init__.py").is_file()} == set()
