"""Names of devices, and which devices this host's probe results are."""

from __future__ import annotations

import pytest

from orchestrator.model.device import Api, ApiFacts, DeviceFacts, Precision, Source
from workers.devices.probe import gpu_vendor
from workers.devices.workstation import CPU_SERIAL, sort_devices
from workers.engines.pocketfarm.measure import device_option
from workers.engines.pocketfarm.plans.compiler_options import limits_of, opencl_c


@pytest.mark.parametrize(
    ("names", "vendor"),
    [
        (("Adreno (TM) 530",), "adreno"),
        (("QUALCOMM Adreno(TM)",), "adreno"),
        (("Mali-G710 r0p0", "ARM"), "mali"),
        (("PowerVR Rogue GE8320",), "powervr"),
        (("pthread-skylake-avx512-Intel(R) Xeon(R)", "GenuineIntel", "Portable Computing Language 3.1"), "cpu"),
        (("pthread-AMD EPYC 7B13", "AuthenticAMD"), "cpu"),
        (("cpu-znver3-AMD EPYC 7B13", "AuthenticAMD"), "cpu"),
        (("llvmpipe (LLVM 15.0.6, 256 bits)",), "cpu"),
        (("NVIDIA H200", "NVIDIA Corporation"), "nvidia"),
        (("gfx1100", "Advanced Micro Devices, Inc."), "amd"),
        (("Intel(R) UHD Graphics 620",), "intel"),
        (("", "unheard of"), ""),
    ],
)
def test_gpu_vendor(names: tuple[str, ...], vendor: str) -> None:
    assert gpu_vendor(*names) == vendor


def facts(api: Api, name: str, version: str = "", **more: str) -> ApiFacts:
    return ApiFacts(api=api, version=version, device_name=name, **more)


XEON = "Intel(R) Xeon(R) Processor"
THREADS = facts(Api.CPU, XEON, vendor="GenuineIntel")


def test_software_is_one_device_and_each_gpu_another() -> None:
    pocl, lavapipe = facts(Api.OPENCL, "pthread-x"), facts(Api.VULKAN, "llvmpipe (LLVM 15)")
    intel_cl, intel_vk = (
        facts(Api.OPENCL, "Intel(R) UHD Graphics 620 [0x5917]"),
        facts(Api.VULKAN, "Intel UHD Graphics 620 (KBL GT2)"),
    )
    nvidia = facts(Api.OPENCL, "NVIDIA H200")
    assert sort_devices([intel_cl, pocl, lavapipe, intel_vk, THREADS, nvidia]) == {
        "local-intel-uhd-graphics-620": (intel_cl, intel_vk),
        CPU_SERIAL: (pocl, lavapipe, THREADS),
        "local-nvidia-h200": (nvidia,),
    }


def test_a_probe_of_a_server_with_one_gpu() -> None:
    """The agent found two OpenCL devices there, and no Vulkan."""
    h200 = facts(Api.OPENCL, "NVIDIA H200", vendor="NVIDIA Corporation", driver="NVIDIA CUDA 580.159.04")
    pocl = facts(
        Api.OPENCL, f"cpu-skylake-avx512-{XEON}", vendor="GenuineIntel", driver="Portable Computing Language 5"
    )
    assert sort_devices([h200, pocl, THREADS]) == {"local-nvidia-h200": (h200,), CPU_SERIAL: (pocl, THREADS)}


def test_a_vendor_s_only_gpu_is_one_device_under_two_names() -> None:
    radeon_cl = facts(Api.OPENCL, "gfx1030", vendor="Advanced Micro Devices, Inc.")
    radeon_vk = facts(Api.VULKAN, "AMD Radeon RX 6800 (RADV NAVI21)")
    assert sort_devices([radeon_cl, radeon_vk]) == {"local-amd-radeon-rx-6800": (radeon_cl, radeon_vk)}


def test_two_gpus_of_one_vendor_are_told_apart_by_name() -> None:
    names = ("NVIDIA RTX A4000", "NVIDIA RTX A2000")
    found = [facts(api, name) for api in (Api.OPENCL, Api.VULKAN) for name in names]
    assert {serial: len(own) for serial, own in sort_devices(found).items()} == {
        "local-nvidia-rtx-a4000": 2,
        "local-nvidia-rtx-a2000": 2,
    }


def test_a_vendor_s_opencl_for_processors_is_no_gpu() -> None:
    runtime = facts(Api.OPENCL, XEON, vendor="Intel(R) Corporation")
    assert sort_devices([runtime, THREADS]) == {CPU_SERIAL: (runtime, THREADS)}


def test_a_workstation_s_device_is_named_for_each_run() -> None:
    apis = (facts(Api.OPENCL, "gfx1030"), facts(Api.VULKAN, "AMD Radeon RX 6800"), THREADS)
    here = DeviceFacts(serial="local-x", host="h", kind="workstation", source=Source.WORKSTATION, apis=apis)
    assert [device_option(here, api) for api in Api] == ["gfx1030", "AMD Radeon RX 6800", ""]
    assert device_option(here.model_copy(update={"kind": "phone"}), Api.OPENCL) == ""


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("OpenCL 3.0", "3.0"),
        ("OpenCL 2.1 AMD", "2.0"),
        ("OpenCL 1.2 CUDA", "1.2"),
        ("OpenCL 1.0 x", "1.1"),
        ("", "1.2"),
    ],
)
def test_opencl_c(version: str, expected: str) -> None:
    assert opencl_c(facts(Api.OPENCL, "x", version)) == expected


@pytest.mark.parametrize(("instruction", "in_8_bits"), [("", False), ("vnni", True), ("sdot", True)])
def test_a_cpu_without_an_instruction_for_8_bits_computes_in_fp32(instruction: str, in_8_bits: bool) -> None:
    """Agents before this fact told nothing, and keep to fp32; kernels of GPUs know no instruction of a CPU."""
    apis = tuple(
        ApiFacts(api=api, version="1", device_name="d", precisions=(Precision.FP32,), dot_product=dot)
        for api, dot in ((Api.CPU, instruction), (Api.OPENCL, "khr"))
    )
    facts = DeviceFacts(serial="A", host="h", kind="phone", source=Source.VIRTUAL, apis=apis)
    cpu, gpu = (limits_of(facts, api, Precision.FP32) for api in (Api.CPU, Api.OPENCL))
    assert (cpu.int8_layers, cpu.dot_product, gpu.dot_product) == (in_8_bits, "", "khr")
