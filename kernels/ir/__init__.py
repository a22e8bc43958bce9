"""The graph of a network: nodes, shapes, operand rules, checks."""
