"""The sampling thread: what it reads, when, and what it says of itself."""

from __future__ import annotations

import os
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.model.event import parse_event
from tests.waiting import eventually

from .driver import Agent, Ended
from .phone_nodes import battery, clocks, link_cores, write_nodes
from .plans import vector
from .test_control import await_text, finish, slow, small

KGSL = "sys/class/kgsl/kgsl-3d0"
MALI = "sys/class/misc/mali0/device"
ENDLESS = ("--idle-ms", 120_000, "--power-period-ms", 10)
PERIOD_NS = 100_000_000
"""The least time between two readings of rails."""
CLUSTERS = {"policy0": (1_401_600, 1_785_600, (0, 1)), "policy2": (2_400_000, 2_841_600, (2,))}


def sampled(agent: Agent, nodes: dict[str, str], *options: object) -> Ended:
    """A run of some readings below a phone's nodes."""
    root = write_nodes(agent.folder, nodes)
    options = options or ("--idle-ms", 30, "--power-period-ms", 10)
    run = agent.run(small("cpu"), {"x": vector(1)}, *options, POCKETFARM_SYSROOT=root)
    assert run.code == 0
    return run


def test_gauge_is_read(agent: Agent) -> None:
    for reading in sampled(agent, battery()).all("power"):
        assert (reading.current_ua, reading.voltage_uv, reading.temp_dc) == (-412_000, 3_911_000, 287)
        assert (reading.status, reading.charge_uah, reading.read_ns > 0) == ("Discharging", 2_100_000, True)
        assert (reading.gpu_hz, reading.gpu_cap_hz, reading.gpu_busy, reading.skin_dc) == (None,) * 4
        assert reading.cpu_khz == reading.cpu_cap_khz == ()


def test_missing_gauge_is_told_once(agent: Agent) -> None:
    run = sampled(agent, {})
    assert [event.code for event in run.all("warning")] == ["no_power_gauge"]
    assert {reading.current_ua for reading in run.all("power")} == {None}


def test_node_that_changes_is_read_again(agent: Agent) -> None:
    root, journal = write_nodes(agent.folder, battery()), agent.folder / "journal"
    process = agent.start(small("cpu"), {"x": vector(1)}, *ENDLESS, "--journal", journal, POCKETFARM_SYSROOT=root)
    await_text(journal, '"power"')
    node = agent.folder / "sys/class/power_supply/battery/current_now"
    with node.open("r+") as kept:  # in place, as the kernel does: descriptors stay valid
        kept.write("-777000\n")
    await_text(journal, "-777000")
    process.terminate()
    seen = [reading.current_ua for reading in finish(process).all("power")]
    assert list(dict.fromkeys(seen)) == [-412_000, -777_000]


def test_clocks_and_caps_of_clusters(agent: Agent) -> None:
    link_cores(agent.folder, CLUSTERS)
    reading = sampled(agent, clocks(CLUSTERS)).all("power")[0]
    assert reading.cpu_khz == (1_401_600, 1_401_600, 2_400_000)
    assert reading.cpu_cap_khz == (1_785_600, 1_785_600, 2_841_600)


def test_cap_that_cannot_be_read_is_absent(agent: Agent) -> None:
    link_cores(agent.folder, CLUSTERS)
    nodes = {path: text for path, text in clocks(CLUSTERS).items() if "max" not in path}
    reading = sampled(agent, nodes).all("power")[0]
    assert (len(reading.cpu_khz), reading.cpu_cap_khz) == (3, ())


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({"gpuclk": "257000000", "devfreq/max_freq": "624000000", "gpu_busy_percentage": "31 %"}, (257e6, 624e6, 0.31)),
        (
            {"devfreq/cur_freq": "257000000", "max_gpuclk": "624000000", "gpubusy": " 250000 1000000"},
            (257e6, 624e6, 0.25),
        ),
        ({"gpuclk": "257000000", "gpubusy": "      0       0"}, (257e6, None, 0.0)),
        ({"gpuclk": "257", "gpu_busy_percentage": "250"}, (257e6, None, None)),
    ],
)
def test_adreno(agent: Agent, nodes: dict[str, str], expected: tuple[float | None, ...]) -> None:
    reading = sampled(agent, {f"{KGSL}/{name}": text for name, text in nodes.items()}).all("power")[0]
    assert (reading.gpu_hz, reading.gpu_cap_hz, reading.gpu_busy) == expected


def test_mali(agent: Agent) -> None:
    nodes = {"cur_freq": "471000", "scaling_max_freq": "848000000", "utilization": "87"}
    reading = sampled(agent, {f"{MALI}/{name}": text for name, text in nodes.items()}).all("power")[0]
    assert (reading.gpu_hz, reading.gpu_cap_hz, reading.gpu_busy) == (471e6, 848e6, 0.87)


@pytest.mark.parametrize(("text", "expected"), [("34351", 343), ("343", 343), ("34", 340), ("-5000", -50)])
def test_skin(agent: Agent, text: str, expected: int) -> None:
    zones = {"thermal_zone0": ("cpu-0-0", "71000"), "thermal_zone3": ("quiet-Skin-therm", text)}
    nodes = {f"sys/class/thermal/{zone}/{key}": value for zone, both in zones.items()
             for key, value in zip(("type", "temp"), both, strict=True)}  # fmt: skip
    assert sampled(agent, nodes).all("power")[0].skin_dc == expected


def test_processor_time_of_the_phone_is_its_own(agent: Agent) -> None:
    """The phone is busy in 150 of 200 ticks that pass, more than this process could have taken."""
    root, journal = write_nodes(agent.folder, {"proc/stat": "cpu  1000 0 0 1000 0 0 0 0 0 0"}), agent.folder / "journal"
    process = agent.start(small("cpu"), {"x": vector(1)}, *ENDLESS, "--journal", journal, POCKETFARM_SYSROOT=root)
    await_text(journal, '"power"')
    with (agent.folder / "proc/stat").open("r+") as kept:
        kept.write("cpu  1100 0 50 1050 0 0 0 0 0 0")
    await_text(journal, '"cpu_busy"')
    process.terminate()
    told = [reading for reading in finish(process).all("power") if reading.cpu_busy is not None]
    assert [reading.cpu_busy for reading in told] == [0.75]
    assert told[0].own_busy is not None
    assert told[0].own_busy < 0.75


def test_own_load_is_seen(agent: Agent) -> None:
    run = agent.call([str(agent.binary), "burn", "--steps", "0,1", "--step-ms", "1000", "--power-period-ms", "50"])
    told = [(reading.t_ns, reading.own_busy) for reading in run.all("power") if reading.own_busy is not None]
    assert all(0 <= busy <= 1 for _, busy in told)
    begin_ns = run.all("phase")[1].start_ns
    idle, load = 0.0, 0.0
    for (before_ns, _), (t_ns, busy) in pairwise(told):  # a share of the time since, however seldom it was read
        if t_ns <= begin_ns:
            idle += busy * (t_ns - before_ns)
        else:
            load += busy * (t_ns - before_ns)
    assert load > 2 * idle


def test_rails(agent: Agent) -> None:
    devices = "sys/bus/iio/devices"
    nodes = {
        f"{devices}/iio:device0/name": "s2mpg10-odpm",
        f"{devices}/iio:device0/energy_value": "t=12\nCH0(T=12)[S10M_VDD_TPU], 17\nCH1(T=12)[VSYS_MODEM], 4000000000",
        f"{devices}/iio:device1/name": "s2mpg11-odpm",
        f"{devices}/iio:device1/energy_value": "t=1234\nCH0(T=1234)[S2S_VDD_G3D], 99",
        f"{devices}/iio:device2/name": "bmp380",
        f"{devices}/iio:device2/energy_value": "t=1\nCH0(T=1)[NOT_A_RAIL], 5",
    }
    run = sampled(agent, nodes, "--idle-ms", 250, "--power-period-ms", 10)
    rails = run.all("rails")
    assert all(
        each.energy_uws == {"S10M_VDD_TPU": 17, "VSYS_MODEM": 4_000_000_000, "S2S_VDD_G3D": 99} for each in rails
    )
    read_at_ns = -PERIOD_NS
    for reading in run.all("power"):  # also where a busy machine lets it read seldom
        if reading.t_ns - read_at_ns >= PERIOD_NS:
            read_at_ns = rails.pop(0).t_ns
            assert read_at_ns >= reading.t_ns
    assert rails == []


def test_no_rails_no_events(agent: Agent) -> None:
    assert sampled(agent, battery()).all("rails") == []


def test_sampler_tells_how_it_went(agent: Agent) -> None:
    run = sampled(agent, battery(), "--idle-ms", 200, "--load-ms", 100, "--power-period-ms", 10)
    told, times = run.one("sampler"), [reading.t_ns for reading in run.all("power")]
    assert (told.period_ns, told.readings) == (10_000_000, len(times))
    assert told.longest_gap_ns == max(after - before for before, after in pairwise(times))
    assert 0 < told.cpu_ns < times[-1] - times[0]
    # The first and the last have no deadline, and the last comes late where the machine is busy.
    least, most = ((end - times[0]) // told.period_ns for end in times[-2:])
    assert least - 1 <= told.readings - 2 + told.missed <= most + 1


def test_sampler_that_was_stopped_tells_its_gap(agent: Agent) -> None:
    """One that stays until its requests end."""
    root, journal = write_nodes(agent.folder, battery()), agent.folder / "journal"
    process = subprocess.Popen(
        [str(agent.binary), "serve", "--power-period-ms", "10", "--journal", str(journal)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=agent.environment({"POCKETFARM_SYSROOT": root}),
    )  # fmt: skip
    agent.started.append(process)
    await_text(journal, '"power"')
    process.send_signal(19)  # SIGSTOP
    time.sleep(0.3)
    written = journal.stat().st_size
    process.send_signal(18)  # SIGCONT
    eventually(lambda: journal.stat().st_size > written)
    told = finish(process).one("sampler")
    assert told.longest_gap_ns >= 250_000_000
    assert told.missed >= 25


def test_no_sampler_without_a_period(agent: Agent) -> None:
    run = agent.run(small("cpu"), {"x": vector(1)}, "--idle-ms", 20)
    assert run.all("power") == run.all("sampler") == []


def test_readings_reach_the_journal_within_a_second(agent: Agent) -> None:
    """They are gathered in memory, but a crash must not cost more than the last second of them."""
    root, journal = write_nodes(agent.folder, battery()), agent.folder / "journal"
    options = ("--idle-ms", 120_000, "--power-period-ms", 20, "--journal", journal)
    process = agent.start(slow("cpu"), {"x": vector(1)}, *options, POCKETFARM_SYSROOT=root)
    await_text(journal, '"power"')
    begun_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def is_fresh() -> bool:  # on a machine that is busy at the moment, the agent may be late by more
        last_ns = parse_event(journal.read_text().rpartition("\n")[0].splitlines()[-1]).t_ns
        return last_ns > begun_ns + 2 * 10**9 and time.clock_gettime_ns(time.CLOCK_BOOTTIME) - last_ns < 1_200_000_000

    eventually(is_fresh)
    process.kill()
    process.wait()
    assert journal.read_text().splitlines()[-1].endswith("}")


def test_many_short_inferences_stay_cheap(agent: Agent) -> None:
    """Every sample is kept, and the agent's memory does not grow with them."""
    # An agent with AddressSanitizer keeps freed memory for a while, unless told not to.
    freed = {"ASAN_OPTIONS": "quarantine_size_mb=1:thread_local_quarantine_size_kb=64"}
    few = agent.run(small("cpu"), {"x": vector(1)}, "--samples", 100, "--threads", 1, **freed)
    many = agent.run(small("cpu"), {"x": vector(1)}, "--samples", 30_000, "--threads", 1, **freed)
    assert [sample.index for sample in many.all("sample")] == list(range(30_000))
    assert many.one("memory").vm_hwm_bytes < few.one("memory").vm_hwm_bytes + 3_000_000


def threads_of(pid: int) -> list[tuple[str, int]]:
    """The cores that each thread may use, and its niceness."""
    told = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        nice = int((task / "stat").read_text().rpartition(")")[2].split()[16])
        told.append((status["Cpus_allowed_list"].strip(), nice))
    return told


@pytest.mark.parametrize("virtual", [False, True])
def test_sampler_is_pinned_and_nice(agent: Agent, virtual: bool) -> None:
    """Virtual phones share the host's cores, and their samplers must not all take one."""
    environment = {"POCKETFARM_SYSROOT": write_nodes(agent.folder, battery())} if virtual else {}
    journal = agent.folder / "journal"
    options = ("--idle-ms", 60_000, "--power-period-ms", 20, "--journal", journal)
    process = agent.start(small("cpu"), {"x": vector(1)}, *options, **environment)
    await_text(journal, '"power"')
    (cpus,) = [cpus for cpus, nice in threads_of(process.pid) if nice > os.nice(0)]
    assert cpus.isdigit() or virtual
    if virtual:
        assert {cpus for cpus, _ in threads_of(process.pid)} == {cpus}
    process.terminate()
    finish(process)


def test_cpus_bind_every_thread(agent: Agent, api: str) -> None:
    core, journal = max(os.sched_getaffinity(0)), agent.folder / "journal"
    options = ("--cpus", core, "--threads", 3, "--idle-ms", 60_000, "--power-period-ms", 20, "--journal", journal)
    process = agent.start(small(api), {"x": vector(1)}, *options)
    await_text(journal, '"power"')
    threads = threads_of(process.pid)
    assert {cpus for cpus, _ in threads} == {str(core)}
    assert len(threads) >= (5 if api == "cpu" else 3)
    process.terminate()
    assert finish(process).one("device").cpus == (core,)


def test_cpus_set_the_number_of_threads(agent: Agent) -> None:
    core = min(os.sched_getaffinity(0))
    assert agent.run(small("cpu"), {"x": vector(1)}, "--cpus", core).one("device").threads == 1


@pytest.mark.parametrize("cpus", ["1000", "0-", "-1", "1-0", "0,", "a", "99999999999999999999"])
def test_cores_that_do_not_exist(agent: Agent, cpus: str) -> None:
    run = agent.run(small("cpu"), {"x": vector(1)}, "--cpus", cpus)
    assert run.error.code == "usage"
    assert cpus in run.error.message


def test_cores_of_a_virtual_phone(agent: Agent) -> None:
    """It has more than the host: they share the host's."""
    root = write_nodes(agent.folder, {"sys/devices/system/cpu/present": "0-7"})
    run = agent.run(small("cpu"), {"x": vector(1)}, "--cpus", "4-7", POCKETFARM_SYSROOT=root)
    assert run.code == 0
    assert set(run.one("device").cpus) <= os.sched_getaffinity(0)
    refused = agent.run(small("cpu"), {"x": vector(1)}, "--cpus", "8", POCKETFARM_SYSROOT=root)
    assert (refused.error.code, "0-7" in refused.error.message) == ("usage", True)


def test_cores_that_the_phone_has_switched_off(agent: Agent) -> None:
    """Another attempt may find them on: no error of usage."""
    cpu = "sys/devices/system/cpu"
    root = write_nodes(agent.folder, {f"{cpu}/present": "0-7", f"{cpu}/online": "0-2,5"})
    refused = agent.run(small("cpu"), {"x": vector(1)}, "--cpus", "4-5", POCKETFARM_SYSROOT=root)
    assert refused.error.code == "device_error"
    assert "online are 0-2,5" in refused.error.message
    assert agent.run(small("cpu"), {"x": vector(1)}, "--cpus", "5", POCKETFARM_SYSROOT=root).code == 0


def test_takes_a_thread_for_each_core_that_it_may_use(agent: Agent) -> None:
    allowed = os.sched_getaffinity(0)
    assert agent.run(small("cpu"), {"x": vector(1)}).one("device").threads == len(allowed)


def test_burn(agent: Agent) -> None:
    root = write_nodes(agent.folder, battery())
    argv = [
        str(agent.binary),
        "burn",
        "--steps",
        "0,2,0",
        "--step-ms",
        "120",
        "--power-period-ms",
        "10",
        "--marker",
        "m",
    ]
    run = agent.call(argv, POCKETFARM_SYSROOT=root)
    assert run.code == 0
    assert (run.events[0].command, run.events[0].marker) == ("burn", "m")
    told = run.all("phase")
    assert [phase.phase for phase in told] == ["idle_before", "load", "idle_before"]
    assert all(phase.end_ns - phase.start_ns >= 120_000_000 for phase in told)
    assert all(before.end_ns <= after.start_ns for before, after in pairwise(told))
    assert {reading.current_ua for reading in run.all("power")} == {-412_000}
    assert run.one("sampler").readings == len(run.all("power"))
    assert run.events[-1].samples == 3


def test_burn_takes_the_slot_and_is_ended(agent: Agent) -> None:
    slot = str(agent.folder / "slot")
    argv = [str(agent.binary), "burn", "--steps", "1", "--step-ms", "60000"]
    run = agent.call([*argv, "--deadline-s", "0.5"], POCKETFARM_SLOT=slot)
    assert run.error.code == "deadline"
    assert run.all("setup")[0].step == "slot"


def test_burn_detached(agent: Agent) -> None:
    journal = agent.folder / "journal"
    words = (
        "burn",
        "--steps",
        "0,1",
        "--step-ms",
        "100",
        "--detach",
        "--journal",
        str(journal),
        "--power-period-ms",
        "20",
    )
    assert '"pid"' in agent.plain(*words).stdout
    assert '"phase":"load"' in await_text(journal, '"result"')
