"""Describe a validation error in the words of the farm instead of the validator's."""

from __future__ import annotations

import re
from datetime import date

from pydantic_core import ErrorDetails

WHOLE, NUMBER, TEXT, TRUTH = "a whole number", "a number", "a text", "true or false"
MAPPING, LIST = "a mapping (`key: value`)", "a list (`[a, b]`)"
KINDS = {
    "int_parsing": WHOLE, "int_type": WHOLE, "int_from_float": WHOLE, "float_parsing": NUMBER, "float_type": NUMBER,
    "finite_number": "a finite number", "string_type": TEXT, "bool_parsing": TRUTH, "bool_type": TRUTH,
    "list_type": LIST, "tuple_type": LIST, "dict_type": MAPPING, "model_type": MAPPING,
    "model_attributes_type": MAPPING,
    "greater_than_equal": "{ge} or more", "greater_than": "more than {gt}", "less_than_equal": "{le} or less",
    "less_than": "less than {lt}", "literal_error": "{expected}", "enum": "{expected}",
    "union_tag_invalid": "{discriminator} to be one of {expected_tags}",
    "union_tag_not_found": "a mapping with {discriminator}",
    "too_short": "{min_length} values or more", "too_long": "{max_length} values or fewer",
    "string_too_short": "{min_length} characters or more", "string_too_long": "{max_length} characters or fewer",
}  # fmt: skip
"""Words by pydantic's type of error."""


def wanted(error: ErrorDetails) -> str:
    """Return what is allowed there: `a whole number`, `1 or more`, `'all' or 'any'`; or a model's own words."""
    template = KINDS.get(error["type"])
    if template is not None:
        return template.format(**error.get("ctx", {}))
    return re.sub(r"^(Value error, |Input should be )", "", error["msg"])


def describe(error: ErrorDetails) -> str:
    """The same as a sentence, with what was found: `expected a whole number, got 'ten'`."""
    if error["type"] == "missing":
        return "this field is required"
    if error["type"] == "extra_forbidden":
        return "there is no such field"
    if error["type"] == "json_invalid":
        return f"this is no JSON: {error['ctx']['error']}"
    if error["type"] == "value_error":
        return wanted(error)
    return f"expected {wanted(error)}" + (f", got {shown(error['input'])}" if "input" in error else "")


def shown(value: object) -> str:
    """A value as it was found, cut where it is long. YAML reads `2026-11-27` as a date, and nothing as null."""
    if value is None:
        return "nothing"
    if isinstance(value, date):
        return f"the date {value}; a text is written in quotes: '{value}'"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
