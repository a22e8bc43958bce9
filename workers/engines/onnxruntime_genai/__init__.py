"""ONNX Runtime GenAI: language models in ONNX on the CPU."""
