"""Commands on nights and comparisons."""
