"""Networks as PyTorch's users bring them: exported to ONNX by PyTorch itself, run on every backend."""
