"""The language that kernels are written in: bodies, parameters, constants, and their text for OpenCL and Vulkan.

Conventions of the bodies
- Activations are stacks of four channels (nc4hw4): element ((n * stacks + stack) * h * w + pixel), four lanes.
- A tensor may be a range of another's stacks (a concat without copies): `x_stacks` is the number of stacks of one image
  of the whole buffer, `x_stack0` where the tensor starts.
- Work-groups are (X, 1, 1): what depends on dimensions 1 and 2 is uniform in a work-group, so weights are read once.
- A window reads row or column i of n where `INSIDE(i, n)`, else zero. `PLACE(i, n)` is where the value is;
  `CLAMPED(i, n)` as well, and may be read where i is not inside. With `REFLECT` the image is mirrored at its edges.
- `activation`: 0 none, 1 relu, 2 clip to [lo, hi], 3 sigmoid, 4 leaky relu of slope lo,
  5 hard sigmoid (lo * x + hi, clipped to [0, 1]), 6 hard swish, 8 SiLU, as on the CPU; 7 tanh, 9 GELU by functions.
- Lanes beyond the last channel hold finite numbers that are never read as data.
- `HELD` is the type of single numbers in which a kernel computes: `float`, `int` or `LONG` (`Kernel.number`).
- `UNROLL` marks a loop that is written out; `INCLUDE name` stands for `name.c` beside the body, else in a folder
  `parts` above it.
"""
