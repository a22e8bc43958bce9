"""Turn a block into options of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.model.base import like
from orchestrator.model.device import Api, DeviceFacts
from orchestrator.model.experiment import MOST_SAMPLES
from workers.devices.fleet import Member
from workers.engines.agent import tenths
from workers.engines.pocketfarm.plans.plan_store import StoredPlan

from .block import Block
from .ports import STATE, TOKENS
from .run_request import RunRequest

CHECKPOINTS = "checkpoints"
"""Folder of the device for those of trainings that are not over."""


def device_option(facts: DeviceFacts, api: Api) -> str:
    """A workstation may have several devices per API: name ours. A phone has one."""
    found = facts.api(api)
    return found.device_name if facts.kind == "workstation" and found and api != Api.CPU else ""


def make_request(
    member: Member, stored: StoredPlan, block: Block, folder: str, plan: str, inputs: Mapping[str, str]
) -> RunRequest:
    """`folder`, `plan` and `inputs` are paths on the device."""
    return like(
        RunRequest,
        block,
        plan=plan,
        inputs={} if stored.plan.generation else inputs,
        tokens=inputs[TOKENS] if stored.plan.generation else "",
        state=f"{folder}/state" if block.keeps_state else "",
        state_before=inputs.get(STATE, "") if stored.plan.generation else "",
        folder=folder,
        marker=member.marker + block.name,
        cache="" if block.setup in ("cold", "warm") else f"{member.connection.folder}/{member.cache}",
        device=device_option(member.facts, Api(stored.plan.api)),
        idle_ms=round(1000 * block.idle_s),
        load_ms=round(1000 * block.load_s),
        least_sample_us=round(1e6 * block.load_s / MOST_SAMPLES),
        stop_temp_dc=tenths(block.stop_temp_c),
        memory_total=int(stored.plan.options.get("memory_budget", 0)),
        largest_object=int(stored.plan.options.get("largest_object", 0)),
        await_discharging_ms=round(1000 * block.await_discharging_s),
        discharging_sign=block.discharging_sign if block.await_discharging_s else 0,
        checkpoint=checkpoint_of(member.connection.folder, block) if block.checkpoint_every else "",
        environment=(
            *(without_driver_caches(folder) if block.setup == "cold" else ()),
            *(() if block.launch == "auto" else (f"POCKETFARM_LAUNCH={block.launch}",)),
        ),
    )


def checkpoint_of(folder: str, block: Block) -> str:
    """Return the checkpoint of a job, whichever attempt writes it."""
    return f"{folder}/{CHECKPOINTS}/{block.name.partition('/')[0]}"


def priming(request: RunRequest) -> RunRequest:
    """The same set-up and one inference, nothing measured."""
    return replace(
        request, folder=f"{request.folder}/primed", marker=f"{request.marker}/primed", warmup=1, samples=0,
        layer_passes=0, power_period_ms=0, idle_ms=0, load_ms=0, least_sample_us=0, stop_temp_dc=0, warmup_stable=0.0,
        await_discharging_ms=0, discharging_sign=0, checkpoint="", checkpoint_every=0,
    )  # fmt: skip


def without_driver_caches(folder: str) -> tuple[str, ...]:
    """Variables with which the drivers that keep compiled programs on disk find none: PoCL, Mesa, NVIDIA."""
    return (
        f"POCL_CACHE_DIR={folder}/driver-cache",
        "MESA_SHADER_CACHE_DISABLE=true",
        "__GL_SHADER_DISK_CACHE=0",
        "CUDA_CACHE_DISABLE=1",
    )
