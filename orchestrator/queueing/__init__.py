"""Queueing experiments with phones as servers.

spec -> arrivals -> dispatcher with a policy -> servers -> table of requests -> measures, beside theory's figures.
The dispatcher and its policies know no clock: `simulation` drives them in virtual time; a live run can do the same.
"""

from __future__ import annotations
