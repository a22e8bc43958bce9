"""Lowering: graph -> draft of a plan, for the GPU interfaces (`gpu/`) and for CPU threads (`cpu.py`)."""
