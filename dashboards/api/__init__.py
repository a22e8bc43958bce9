"""The farm for programs: acts and answers over HTTP, each with the right that it takes."""

from .app import API, Sources, mounted
from .problems import problem

__all__ = ["API", "Sources", "mounted", "problem"]
