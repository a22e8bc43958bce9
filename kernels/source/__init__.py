"""Kernel bodies in a common subset of OpenCL C and GLSL, and the dialects that render them."""
