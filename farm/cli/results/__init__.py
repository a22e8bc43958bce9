"""Commands on results."""
