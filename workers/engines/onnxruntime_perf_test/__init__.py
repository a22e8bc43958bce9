"""The engine that runs ONNX Runtime's own benchmark, from a folder that a person brings."""
