"""Cores by name or number."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


def _cores(value: str) -> str:
    if value in ("any", "big", "little"):
        return value
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", value):
        raise ValueError("allowed: `any`, `big`, `little`, or a list of cores such as `0-3,6`")
    return value


Affinity = Annotated[str, AfterValidator(_cores)]
