"""PyTorch on the CPU, by exported programs."""
