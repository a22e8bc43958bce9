"""ncnn on the CPU and through Vulkan."""
