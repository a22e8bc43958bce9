"""Passes over the step of a language model's decoder, whatever an exporter's spelling of it."""

from kernels.ir.graph import Graph

from .cached_attention import cached_attention
from .divided_products import divided_products

__all__ = ["few_steps"]


def few_steps(graph: Graph) -> Graph:
    """The same step in the operations of a cache, if it has a state; else the graph as it is."""
    return divided_products(cached_attention(graph)) if graph.state else graph
