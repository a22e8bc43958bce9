"""ONNX Runtime on the CPU."""
