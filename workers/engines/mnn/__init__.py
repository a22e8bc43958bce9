"""MNN on the CPU."""
