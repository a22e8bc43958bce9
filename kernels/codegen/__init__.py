"""The way from a kernel's source to what a driver takes: rendered text, SPIR-V."""
