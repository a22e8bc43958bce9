"""Learn from the ledger's blocks how a phone warms, throttles and starts: records -> histories -> fits -> the spec."""

from .body import Body, fill_bodies, learn_body
from .history import History, history_of
from .throttling import throttle_steps
from .warming import Warming, fit_warming
