"""The figures of one block: everything that statistics need of a record, derived from it once, when the ledger gets it.

Every number that the farm tells of a cell is made of these rows, never of records. They are small, say by which version
of this package they were made, and can be made again from the records.
"""

from .block import (
    FIGURES_VERSION,
    BlockFigures,
    Course,
    Energy,
    Epoch,
    LayerTime,
    Memory,
    PerLayer,
    Rate,
    Stage,
    Trained,
    Value,
)
from .derive import figures_of
from .quantities import ENERGIES, QUANTITIES, TOKEN_ENERGIES
from .times import NS_PER_MS, Mean, Times, mean_of, timed_ms, times_of
