"""Keep a row of figures beside each record: derived, and made anew where it is missing or of another version."""

from .energies import Energies, energies
from .intake import columns, put
from .packing import Apart
from .reading import briefs, read
from .renewal import BATCH, Renewed, keys, lacking, renew
from .selector import Selector
