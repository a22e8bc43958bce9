"""The engine that runs the benchmark of TensorFlow Lite and LiteRT, from a folder that a person brings."""
