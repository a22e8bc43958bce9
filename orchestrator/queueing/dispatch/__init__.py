"""The dispatcher: who serves which request next. It knows no clock; whoever drives it gives the time."""

from __future__ import annotations

from .dispatcher import Dispatcher, Hands, Rules
from .request import Request
from .server import Server, Thermometer

__all__ = ["Dispatcher", "Hands", "Request", "Rules", "Server", "Thermometer"]
