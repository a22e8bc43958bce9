"""Read a folder with an engine's program, as somebody brings it, and refuse what could never start on a phone."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import ModelFileError
from orchestrator.model.experiment.workload import why_no_files

from .elf import MACHINES, Elf, NotElf, is_elf, read_elf

SEARCHED = ("", "lib/")
"""The loader looks for an engine's own libraries in the folder itself, and in its `lib`."""
_ANDROID = (
    "aaudio amidi android binder_ndk c camera2ndk dl EGL GLESv1_CM GLESv2 GLESv3 icu jnigraphics log m mediandk "
    "nativehelper nativewindow neuralnetworks OpenMAXAL OpenSLES stdc++ sync vulkan z OpenCL cdsprpc adsprpc"
)
_LINUX = (
    "libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libgcc_s.so.1 libstdc++.so.6 libgomp.so.1 libz.so.1 "
    "libvulkan.so.1 libOpenCL.so.1 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld-linux-armhf.so.3"
)
OF_DEVICES = frozenset((*(f"lib{name}.so" for name in _ANDROID.split()), *_LINUX.split()))
"""Libraries that devices bring: the NDK's list and the vendors' (OpenCL, Hexagon); Linux's, for virtual phones and this
machine."""


def read_folder(
    folder: Path, engine: str, abi: str, programs: Sequence[str], version: str, artifacts: Artifacts
) -> EngineBuild:
    """Keep the files of a folder that has one of the programs. Raises ModelFileError, where nothing is kept."""
    if abi not in MACHINES.values():
        raise _bad(f"{abi!r} is no ABI", f"these are: {', '.join(MACHINES.values())}; `farm devices` shows a phone's")
    if not folder.is_dir():
        raise _bad(f"there is no folder {folder}", "name the folder with the program and its libraries")
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    if why := why_no_files(files, folder):
        raise _bad(why, "leave out what does not run, or rename it")
    program = _program(files, programs, folder)
    _check(files, program, abi)
    kept = {name: artifacts.put(path) for name, path in files.items()}
    size = sum(path.stat().st_size for path in files.values())
    given = {"engine": engine, "abi": abi, "version": version, "program": program, "files": kept, "bytes": size}
    try:
        return EngineBuild.model_validate(given)
    except ValidationError as e:
        error = e.errors()[0]
        raise _bad(f"{'.'.join(map(str, error['loc']))}: {error['msg']}", "write it otherwise") from e


def _program(files: Mapping[str, Path], programs: Sequence[str], folder: Path) -> str:
    found = [name for wanted in programs for name in files if PurePosixPath(name).name == wanted]
    if not found:
        raise _bad(
            f"there is no program {' or '.join(map(repr, programs))} in {folder}",
            "build the engine's own benchmark, and name the folder that it lies in, or the one above",
        )
    return min(found, key=lambda name: (programs.index(PurePosixPath(name).name), name.count("/"), name))


def _check(files: Mapping[str, Path], program: str, abi: str) -> None:
    """Refuse what is of another ABI, and a library that neither the folder nor a device has."""
    with files[program].open("rb") as file:
        is_script = file.read(2) == b"#!"
    if not (is_script or is_elf(files[program])):
        raise _bad(f"{program}: it is neither a program (ELF) nor a script", "build it for the phone's ABI")
    found = {name: _elf(name, path) for name, path in files.items() if is_elf(path)}
    for name in sorted(found, key=lambda name: name != program):
        if found[name].abi != abi:
            raise _bad(f"{name} is built for {found[name].abi}, not for {abi}", "build it anew, or name its own ABI")
    own = {name.removeprefix("lib/") for name in files}
    reached, left = set[str](), [program] if program in found else []
    while left:
        name = left.pop()
        reached.add(name)
        for library in found[name].needed:
            place = next((f"{start}{library}" for start in SEARCHED if f"{start}{library}" in found), "")
            if place and place not in reached:
                left.append(place)
            if library not in own | OF_DEVICES:
                there = next((each for each in files if PurePosixPath(each).name == library), "")
                raise _bad(
                    f"{name} needs {library}, which neither the folder nor a phone has"
                    + f" where it is searched: it lies at {there}" * bool(there),
                    "put it beside the other files, or into `lib/`",
                )


def _elf(name: str, path: Path) -> Elf:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            return read_elf(content)  # type: ignore[arg-type]  # it is read as bytes are
        except NotElf as e:
            raise _bad(f"{name}: {e}", "bring a whole file") from e


def _bad(what: str, remedy: str) -> ModelFileError:
    return ModelFileError(what, remedy=remedy)
