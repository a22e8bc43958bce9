"""The folders of what drivers and engines compiled: one for all, so that a first start can be repeated."""

from __future__ import annotations

from pathlib import Path

_FOLDERS = {
    "XDG_CACHE_HOME": "xdg",  # Mesa, PoCL, tinygrad and ours keep theirs here unless told otherwise
    "MESA_SHADER_CACHE_DIR": "mesa",
    "POCL_CACHE_DIR": "pocl",
    "CUDA_CACHE_PATH": "cuda",  # NVIDIA's OpenCL, too
    "__GL_SHADER_DISK_CACHE_PATH": "nvidia-gl",  # NVIDIA's Vulkan
}


def cache_environment(folder: Path) -> dict[str, str]:
    """Variables that move every known cache into `folder`."""
    variables = {}
    for name, part in _FOLDERS.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        variables[name] = str(folder / part)
    return {**variables, "CACHEDB": str(folder / "tinygrad.db")}
