"""LiteRT (TensorFlow Lite) on the CPU, with XNNPACK."""
