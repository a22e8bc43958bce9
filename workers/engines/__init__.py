"""Engines prepare and run programs; each is a folder behind one interface (docs/howto/add-an-engine.md)."""

from .engine import Coming, Commands, Engine, Host, Measured, Program, Reader, Report, Run, Trips, Verdict, Work
from .powered import powered
from .registry import Engines
from .told import runs_on, suspended_s
