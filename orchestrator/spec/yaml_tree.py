"""A YAML text as plain data that remembers where each value stands. Safe: no objects, bounded size and depth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_DEPTH = 20
MAX_NODES = 200_000

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """1-based line and column."""

    line: int
    column: int


@dataclass
class YamlTree:
    """Data, the place of each value and key by its path, and what is wrong with the text itself."""

    data: Any = None
    values: dict[Path, Place] = field(default_factory=dict)
    keys: dict[Path, Place] = field(default_factory=dict)
    problems: list[tuple[Path, Place, str]] = field(default_factory=list)

    def place(self, path: Path) -> Place:
        """Return where a value stands, or the innermost thing around it that exists."""
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Place(1, 1))

    def key_place(self, path: Path) -> Place:
        return self.keys.get(path) or self.place(path)


def read(text: str) -> YamlTree:
    """Parse one YAML document. Everything wrong is in `problems`, never raised."""
    tree = YamlTree()
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            tree.data = None if node is None else _Walk(loader, tree).value(node, ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        hint = "; indent with spaces, not with tabs" if "'\\t'" in (e.problem or "") else ""
        tree.problems.append(((), place, f"not YAML: {e.problem or e.context}{hint}"))
    except yaml.YAMLError as e:
        tree.problems.append(((), Place(1, 1), f"not YAML: {e}"))
    except RecursionError:
        tree.problems.append(((), Place(1, 1), "nested too deeply"))
    return tree


class _Walk:
    """Nodes -> data, noting the places. Aliases are followed, within the bounds."""

    def __init__(self, loader: yaml.SafeLoader, tree: YamlTree) -> None:
        self._loader, self._tree, self._count = loader, tree, 0

    def value(self, node: Node, path: Path) -> Any:
        place = _place(node)
        self._tree.values[path] = place
        self._count += 1
        if len(path) > MAX_DEPTH or self._count > MAX_NODES:
            raise RecursionError
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(path, key_node, "a key must be a plain word")
                continue
            key = str(key_node.value)
            if key in data:
                self._problem((*path, key), key_node, f"the key is given twice; first in line {self._first(path, key)}")
                continue
            self._tree.keys[(*path, key)] = _place(key_node)
            data[key] = self.value(value_node, (*path, key))
        return data

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as e:
            self._problem(path, node, f"not a plain value: {getattr(e, 'problem', None) or e}")
            return None

    def _first(self, path: Path, key: str) -> int:
        return self._tree.keys[(*path, key)].line

    def _problem(self, path: Path, node: Node, message: str) -> None:
        self._tree.problems.append((path, _place(node), message))


def _place(node: Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)
