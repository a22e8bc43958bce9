"""Operators that become other ones, and rewritings of the model's own nodes."""

from __future__ import annotations

from . import control, runtime, sequences

OPERATORS = (*control.OPERATORS, *runtime.OPERATORS, *sequences.OPERATORS)
