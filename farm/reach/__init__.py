"""The way in for other machines: a farm's address and ports, and the certificates that prove whose they are."""

from .address import Reach, authority_of, given_certificate, reach_of

__all__ = ["Reach", "authority_of", "given_certificate", "reach_of"]
