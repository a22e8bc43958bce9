"""Commands on devices and hosts."""
