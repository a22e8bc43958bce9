"""Tensors of which the model's input decides how many rows are valid: they are padded to the largest number."""
