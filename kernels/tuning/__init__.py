"""Tuning: the fastest algorithm and tile for each layer on one device, measured there, kept in a database."""

from .candidates import Trial, applicable, candidates, default_choice, distinct, layers, steps, trial
from .database import Database, Found, device_key, read
from .layers import Layer
from .strategies import STRATEGIES, Budgeted, Exhaustive, Halving, Measure, Strategy
from .trials import Ran, RunTrial, TimeIsOver, TrialFailed
from .tune import Progress, tune
