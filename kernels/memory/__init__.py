"""Where buffers lie: layout, memory budget, swapping, waves."""
