"""The shell of a phone: grammar, interpreter, and the table of commands that it is given."""
