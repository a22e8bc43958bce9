"""The places of buffers: layout, memory budget, swapping, waves."""
