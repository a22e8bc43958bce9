"""Places of tensors that are no stacks of their own in a buffer, and how kernels read and write them there."""
