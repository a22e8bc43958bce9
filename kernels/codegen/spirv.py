"""GLSL -> SPIR-V by `glslangValidator`, cached on disk by the text's hash.

The cache only saves time: an entry is written under a temporary name and renamed, so readers never see half of one, and
any number of processes may share a folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from kernels.errors import ToolError, checkpoint

COMPILER = "glslangValidator"
TARGET = "vulkan1.1"
_MAGIC = b"\x03\x02\x23\x07"
_TIMEOUT_S = 60
_THREADS = 4
_POLL_S = 0.2


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/pocketfarm/spirv`, by default below `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketfarm" / "spirv"


def compile_all(texts: Sequence[str], *, cache: Path | None = None) -> list[bytes]:
    """Compile every shader, missing ones in parallel; the order is kept. Raises ToolError."""
    folder = cache or default_cache()
    with ThreadPoolExecutor(_THREADS) as threads:
        started = [threads.submit(compile_spirv, text, cache=folder) for text in texts]
        try:
            while wait(started, _POLL_S).not_done:
                checkpoint()
        except BaseException:  # those that run end by themselves, the others never begin
            threads.shutdown(wait=False, cancel_futures=True)
            raise
        return [each.result() for each in started]


def compile_spirv(text: str, *, cache: Path) -> bytes:
    """One shader's SPIR-V. Raises ToolError where the compiler is missing or refuses the text."""
    key = hashlib.sha256(f"{TARGET}\n{text}".encode()).hexdigest()
    entry = cache / f"{key[:32]}.spv"
    if entry.is_file():
        binary = entry.read_bytes()
        if binary.startswith(_MAGIC):
            return binary
    binary = _run_compiler(text)
    _store(entry, binary)
    return binary


def _run_compiler(text: str) -> bytes:
    tool = shutil.which(COMPILER)
    if tool is None:
        raise ToolError(f"{COMPILER} is not on this machine's PATH; mend it: sudo apt-get install glslang-tools")
    with tempfile.TemporaryDirectory(prefix="spirv-") as name:
        source, binary = Path(name) / "shader.comp", Path(name) / "shader.spv"
        source.write_text(text)
        argv = [tool, "-V", "--target-env", TARGET, "-S", "comp", "-o", str(binary), str(source)]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise ToolError(f"{tool} could not be run: {e}") from e
        if done.returncode != 0 or not binary.is_file():
            raise ToolError(f"{tool} refused a shader:\n{(done.stdout + done.stderr).strip()[:2000]}")
        return binary.read_bytes()


def _store(entry: Path, binary: bytes) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=entry.parent, delete=False) as file:
            file.write(binary)
        Path(file.name).replace(entry)
    except OSError:  # a cache that cannot be written costs time only
        return
