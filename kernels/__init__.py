"""COMPUTES: networks and ONNX -> graph -> plan; kernel sources; NumPy reference; interpreter of plans."""
