"""Operators, family by family: each has its entry beside the functions that import it."""

from __future__ import annotations

from . import (
    activations,
    arithmetic,
    casts,
    choosing,
    constants,
    layout,
    normalizations,
    ordering,
    parts,
    placing,
    products,
    quantized,
    recurrent,
    reductions,
    resizing,
    sampling,
    scattering,
    spectra,
    suppressing,
)
from .windows import entries

OPERATORS = (
    *(*activations.OPERATORS, *arithmetic.OPERATORS, *casts.OPERATORS, *choosing.OPERATORS, *constants.OPERATORS),
    *(*layout.OPERATORS, *normalizations.OPERATORS, *ordering.OPERATORS, *parts.OPERATORS, *placing.OPERATORS),
    *(*products.OPERATORS, *quantized.OPERATORS, *recurrent.OPERATORS, *reductions.OPERATORS, *resizing.OPERATORS),
    *(*sampling.OPERATORS, *scattering.OPERATORS, *spectra.OPERATORS, *suppressing.OPERATORS, *entries.OPERATORS),
)
