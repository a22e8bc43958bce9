"""Passes for what only moves elements: transpositions, reshapes, copies of single elements."""
