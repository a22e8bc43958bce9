"""`python -m farm.parts.start MODULE ARGUMENTS...`: start a part of the farm. Nothing looks for garbage while
it imports: there is none, and to look for it took a sixth of the start. `process.begin` has it looked for again."""

from __future__ import annotations

import gc
import runpy
import sys

if __name__ == "__main__":
    gc.disable()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
