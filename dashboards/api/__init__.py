"""The farm for programs: acts and answers over HTTP, each with the right that it takes."""

from .app import API, Sources, make_api

__all__ = ["API", "Sources", "make_api"]
