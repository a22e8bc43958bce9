"""The command line and the ledger of the tests of imports."""

from tests.unit.imports.conftest import farm, ledger

__all__ = ["farm", "ledger"]
