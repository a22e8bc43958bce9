"""Names of ONNX's operators, for code that writes them in lower case."""

from __future__ import annotations

from functools import cache

import onnx


def spelled(word: str) -> str:
    """Return ONNX's name of an operator: that of reduce_sum, or reducesum, is in camel case. Raises AttributeError."""
    name = _by_word().get(word.replace("_", ""))
    if name is None:
        raise AttributeError(f"ONNX has no operator {word!r}")
    return name


@cache
def _by_word() -> dict[str, str]:
    return {schema.name.lower(): schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
