"""GLSL -> SPIR-V by `glslc`, cached on disk by the text's hash.

To start takes a compiler ten times as long as to compile one kernel (it reads GLSL's built-in functions first), so one
process compiles many. The cache only saves time: an entry is written under a temporary name and renamed, so readers
never see half of one, and any number of processes may share a folder.
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

COMPILER = "glslc"
TARGET = "vulkan1.1"
_MAGIC = b"\x03\x02\x23\x07"
_TIMEOUT_S = 60
_THREADS = 4
_WORTH_A_START = 8
"""Texts of one process, until every thread has as many."""
_POLL_S = 0.2


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/pocketfarm/spirv`, by default below `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pocketfarm" / "spirv"


def compile_all(texts: Sequence[str], *, cache: Path | None = None) -> list[bytes]:
    """Compile every shader that the cache lacks; the order is kept. Raises ToolError where the compiler is missing or
    refuses a text."""
    entries = {text: (cache or default_cache()) / f"{_key(text)}.spv" for text in texts}
    binaries = {text: entry.read_bytes() for text, entry in entries.items() if entry.is_file()}
    missing = [text for text in entries if not binaries.get(text, b"").startswith(_MAGIC)]
    for text, binary in _compile(missing).items():
        binaries[text] = binary
        _store(entries[text], binary)
    return [binaries[text] for text in texts]


def _key(text: str) -> str:
    return hashlib.sha256(f"{TARGET}\n{text}".encode()).hexdigest()[:32]


def _compile(texts: Sequence[str]) -> dict[str, bytes]:
    shares = min(_THREADS, -(-len(texts) // _WORTH_A_START))
    with ThreadPoolExecutor(_THREADS) as threads:
        started = [threads.submit(_run_compiler, texts[share::shares]) for share in range(shares)]
        try:
            while wait(started, _POLL_S).not_done:
                checkpoint()
        except BaseException:  # those that run end by themselves, the others never begin
            threads.shutdown(wait=False, cancel_futures=True)
            raise
        return {text: binary for each in started for text, binary in each.result().items()}


def _run_compiler(texts: Sequence[str]) -> dict[str, bytes]:
    tool = shutil.which(COMPILER)
    if tool is None:
        raise ToolError(f"{COMPILER} is not on this machine's PATH; mend it: sudo apt-get install glslc")
    with tempfile.TemporaryDirectory(prefix="spirv-") as folder:
        sources = [Path(folder) / f"{number}.comp" for number in range(len(texts))]
        for source, text in zip(sources, texts, strict=True):
            source.write_text(text)
        argv = [tool, "-c", f"--target-env={TARGET}", *(source.name for source in sources)]
        try:
            timeout_s = _TIMEOUT_S * len(texts)
            done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise ToolError(f"{tool} could not be run: {e}") from e
        if done.returncode != 0:
            raise ToolError(f"{tool} refused a shader:\n{(done.stdout + done.stderr).strip()[:2000]}")
        return {text: Path(f"{source}.spv").read_bytes() for source, text in zip(sources, texts, strict=True)}


def _store(entry: Path, binary: bytes) -> None:
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=entry.parent, delete=False) as file:
            file.write(binary)
        Path(file.name).replace(entry)
    except OSError:  # a cache that cannot be written costs time only
        return
