"""The table that the modules of this folder fill."""

from virtual_phones.shell.table import Table

COMMANDS = Table()
command = COMMANDS.command
