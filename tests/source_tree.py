"""The source as the architecture tests see it: modules, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "orchestrator", "workers", "device_agent", "virtual_phones", "dashboards", "farm", "client")


@dataclass(frozen=True)
class Import:
    """One imported module by its absolute name; `of_types` where only the type checker sees it."""

    target: str
    line: int
    top_level: bool
    of_types: bool = False


@dataclass(frozen=True)
class Module:
    """One Python file of ours."""

    name: str
    path: Path
    text: str

    @property
    def where(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import; `from a import b` gives `a.b`, whether b is a module or a name."""
        return tuple(self._imports())

    def _imports(self) -> Iterator[Import]:
        blocks = filter(_is_typing_block, self.nodes) if "TYPE_CHECKING" in self.text else ()
        typed = {id(node) for block in blocks for node in ast.walk(block)}
        top = {id(node) for node in self.tree.body}
        for node in (each for each in self.nodes if isinstance(each, ast.Import | ast.ImportFrom)):
            for target in self._targets(node):
                yield Import(target, node.lineno, id(node) in top, id(node) in typed)

    def _targets(self, node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        base = node.module or ""
        if node.level:
            parts = self.package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [base])])
        return [f"{base}.{alias.name}" for alias in node.names]


def _is_typing_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def modules() -> dict[str, Module]:
    """Every module of the rooms by name. Build folders hold none of ours."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "build" in path.relative_to(ROOT).parts:
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, path, path.read_text())
    return found


def owner(target: str, known: dict[str, Module]) -> str | None:
    """The module that an imported name lies in; None where it is not ours."""
    while target:
        if target in known:
            return target
        target = target.rpartition(".")[0]
    return None
