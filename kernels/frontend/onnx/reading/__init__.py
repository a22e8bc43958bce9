"""A model as its file has it: protobuf, weights, and ONNX's own C++ in a process of its own."""
