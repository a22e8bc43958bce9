"""Records as phones leave them, made up: for benchmarks of what is done with many of them."""

from __future__ import annotations

import random

from orchestrator.model.device import Api, ApiFacts, Device, DeviceFacts, DeviceState, Health, Precision, Source
from orchestrator.model.event import Layer, Memory, Phase, Power, Sample, Setup
from orchestrator.model.experiment import Experiment, Matrix, Sampling, Workload
from orchestrator.model.job import Job
from orchestrator.model.record import ConditionProof, Doubt, DoubtCode, Outcome, Provenance, Record, RunsOn
from orchestrator.spec.expansion.expand import expand

MS, S = 10**6, 10**9
NETWORKS = ("lenet", "cifar10_quick", "autoencoder_784", "squeezenet_v1_0", "squeezenet_v1_1")
APIS = (Api.OPENCL, Api.VULKAN)
PHONES = 5
BLOCKS_A_ROUND = PHONES * len(NETWORKS) * len(APIS)
LAYERS, SAMPLES, READINGS = 60, 30, 300
STEPS = ("slot", "library", "discovery", "context", "build", "pipeline", "allocate", "upload", "input", "readback")


def night(rounds: int) -> Experiment:
    """Five networks on two APIs, so many blocks of each on each phone."""
    return Experiment(
        name="nightly", workload=Workload(network=NETWORKS[0]), matrix=Matrix(network=NETWORKS, backend=APIS),
        sampling=Sampling(blocks=rounds),
    )  # fmt: skip


def jobs_of(experiment: Experiment, experiment_id: str, count: int = PHONES) -> tuple[Job, ...]:
    phones = [Device(facts=_phone(n), state=DeviceState(health=Health.READY)) for n in range(count)]
    return expand(experiment, experiment_id, phones).jobs


def record_of(job: Job, attempt: int, token: int, seed: int) -> Record:
    """A block of an enrolled phone: rests, a load of 30 inferences, readings of the gauge, times of 60 layers."""
    drawn, serial = random.Random(seed), job.candidates[0]
    samples = [int(drawn.gauss(12, 0.4) * MS) for _ in range(SAMPLES)]
    ends = [10 * S + i * 10 * S for i in range(3)]
    names = ("idle_before", "load", "idle_after")
    return Record(
        experiment_id=job.experiment_id, job_id=job.job_id, cell_id=job.cell.cell_id, block=job.block,
        attempt=attempt, token=token, worker=f"lab-{seed % 7}", device=_phone(int(serial[4:])), source=Source.PHONE,
        outcome=Outcome.OK, started_at=1.79e9 + seed * 41.3, ended_at=1.79e9 + seed * 41.3 + 40,
        runs_on=RunsOn(api=Api(job.cell.backend), precision=Precision.FP32, facts=_facts(Api(job.cell.backend))),
        setup=tuple(
            Setup(seq=i, t_ns=i, step=step, start_ns=i, duration_ns=drawn.randrange(40_000, 90 * MS))  # type: ignore[arg-type]
            for i, step in enumerate(STEPS)
        ),
        samples=tuple(
            Sample(seq=i, t_ns=i, index=i, phase="timed" if i else "warmup", start_ns=(40 + i) * S // 4, duration_ns=ns)
            for i, ns in enumerate(samples)
        ),
        layers=tuple(
            Layer(seq=i, t_ns=i, index=i, layer=f"fire{i // 3}/expand{i % 3}", program=f"conv_direct_{i % 9}",
                  duration_ns=drawn.randrange(20_000, 900_000))
            for i in range(LAYERS)
        ),
        phases=tuple(
            Phase(seq=i, t_ns=end, phase=name, start_ns=end - 10 * S, end_ns=end)  # type: ignore[arg-type]
            for i, (name, end) in enumerate(zip(names, ends, strict=True))
        ),
        power=tuple(
            Power(seq=i, t_ns=i * S // 10, current_ua=-drawn.randrange(300_000, 900_000), voltage_uv=3_900_000 + i,
                  status="Discharging", temp_dc=281)
            for i in range(READINGS)
        ),
        memory=Memory(seq=1, t_ns=1, device_bytes=1, device_peak_bytes=drawn.randrange(16 << 20, 17 << 20),
                      vm_hwm_bytes=drawn.randrange(90 << 20, 99 << 20), vm_rss_bytes=1, pss_bytes=70 << 20),
        conditions=(
            ConditionProof(name="airplane_mode", wanted="on", before="off", held="on", proven=True, restored=True),
            ConditionProof(name="battery_percent", wanted="30 to 100 %", before=f"{seed % 70 + 30} %", proven=True),
            ConditionProof(name="battery_temp", wanted="at most 38 C", before=f"{seed % 9 + 25} C", proven=True),
        ),
        provenance=Provenance(
            program_hash=job.cell.cell_id, agent_sha256=f"{1:064x}", agent_version="0.1.0", model_sha256=f"{2:064x}",
            fingerprint="samsung/o1sxxx/o1s:14/UP1A.231005.007/G991B:user/release-keys", farm_version="0.1.0",
        ),
        doubts=(Doubt(code=DoubtCode.RELATIVE_ENERGY, detail="gain known to 5%"),),
    )  # fmt: skip


def _phone(number: int) -> DeviceFacts:
    return DeviceFacts(
        serial=f"R58M{number:08d}", host="lab", kind="phone", source=Source.PHONE, model="SM-G991B",
        manufacturer="samsung", soc="exynos2100", gpu="Mali-G78", gpu_vendor="mali", abi="arm64-v8a", sdk=34,
        boot_id=f"5b0c2f6e-8d7a-4a8e-9a51-{number:012d}", apis=tuple(map(_facts, APIS)),
    )  # fmt: skip


def _facts(api: Api) -> ApiFacts:
    return ApiFacts(
        api=api, version="OpenCL 3.0 v1.r38p1" if api is Api.OPENCL else "1.3.213", device_name="Mali-G78 r0p1",
        vendor="ARM", driver="38.1.0", library="/vendor/lib64/libOpenCL.so", global_bytes=7 << 30,
        max_buffer_bytes=7 << 30, local_bytes=32 << 10, max_work_group=512, max_work_item_sizes=(512, 512, 512),
        compute_units=14, clock_mhz=854, offset_alignment=128, unified_memory=True, max_image_width=65536,
        max_image_height=65536,
    )  # fmt: skip
