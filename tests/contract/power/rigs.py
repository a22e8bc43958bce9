"""One rig a source: the source on the known signal, and how to break it."""

from __future__ import annotations

import json
import os
import socketserver
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from device_agent.build import binary
from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.event import Rails
from orchestrator.model.power import PowerSource, Scope
from tests.waiting import eventually
from workers.connection.local import LocalConnection
from workers.devices.fleet import Member
from workers.power import Bench, PowerMeter, choose_source
from workers.power.clock_mapping import ahead_s

from . import signal, vendors


@dataclass
class Rig:
    """A source under test."""

    source: PowerMeter
    scope: Scope
    tolerance: float
    """The tolerance of mean power, as a share."""
    events: Callable[[], list[Rails]] = list
    """The agent's readings in the meantime."""
    breaks: Callable[[], None] | None = None
    """None: nothing of it can break on the way."""
    mends: Callable[[], None] = lambda: None
    handles: Callable[[], int] = lambda: 0
    """The number of things left open."""
    gain: bool = True
    """True: its gain is uncertain."""
    seen_s: Callable[[float], float] = lambda host_s: host_s
    """The time of the signal that lay before the source at a time of this host."""
    unsure_s: Callable[[float], float] = lambda host_s: 0.0
    """The time by which that may have been later, since something was just being written."""
    gathered: bool = False
    """True: a reading is the mean of what was written since the one before."""
    held: bool = False
    """True: a momentary power was written late, and held; it may jump between two readings."""


@dataclass
class Workbench:
    """The bench that rigs are built on."""

    folder: Path
    patch: pytest.MonkeyPatch
    stack: ExitStack = field(default_factory=ExitStack)

    def member(self, kind: str = "phone", **facts: Any) -> Member:
        connection = LocalConnection("bench", self.folder / "device")
        told = {"serial": "bench", "host": "h", "kind": kind, "source": Source.PHONE, **facts}
        return Member(connection, DeviceFacts(**told), str(binary()))

    def metered(self, meter: dict[str, Any], **more: Any) -> PowerMeter:
        return choose_source(Bench(self.member(), meter, sys=self.folder / "sys"), PowerSource.METER)

    def install(self, modules: dict[str, Any]) -> None:
        for name, made in modules.items():
            self.patch.setitem(sys.modules, name, made)

    def node(self, path: str, text: str) -> Path:
        made = self.folder / "sys" / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text + "\n")
        return made


def _vendor(bench: Workbench, make: Callable[[vendors.Vendor], dict[str, Any]], meter: dict[str, Any]) -> Rig:
    vendor = vendors.Vendor()
    bench.install(make(vendor))

    def set_broken(on: bool) -> Callable[[], None]:
        return lambda: setattr(vendor, "broken", on)

    source = bench.metered(meter)
    return Rig(
        source, Scope.DEVICE, 0.02, breaks=set_broken(True), mends=set_broken(False), handles=lambda: vendor.open
    )


def monsoon(bench: Workbench) -> Rig:
    return _vendor(bench, vendors.monsoon, {"monsoon": {"serial": 11, "voltage": vendors.MAIN_V}})


def joulescope(bench: Workbench) -> Rig:
    return _vendor(bench, vendors.joulescope, {"joulescope": {"serial": "001234", "frequency": 50}})


def ppk2(bench: Workbench) -> Rig:
    return _vendor(bench, vendors.ppk2, {"ppk2": {"voltage": vendors.PPK_V}})


def libiio(bench: Workbench) -> Rig:
    return _vendor(bench, vendors.libiio, {"iio": {"uri": "ip:192.0.2.1"}})


def _nodes(
    bench: Workbench, node: Path, write: Callable[[], None], build: Callable[[], PowerMeter], scope: Scope
) -> Rig:
    pause = bench.stack.enter_context(signal.repeated(write))

    def breaks() -> None:
        pause.acquire()
        node.unlink()

    def mends() -> None:
        pause.release()
        eventually(node.exists)

    return Rig(build(), scope, 0.02, breaks=breaks, mends=mends)


def hwmon(bench: Workbench) -> Rig:
    bench.node("class/hwmon/hwmon3/name", "ina226")
    node = bench.node("class/hwmon/hwmon3/power1_input", "0")
    log = signal.Log(lambda host_s: str(round(signal.power_w(host_s) * 1e6)))
    made = _nodes(bench, node, lambda: log.write(node), lambda: bench_iio(bench), Scope.DEVICE)
    return replace(made, seen_s=log.seen_s, unsure_s=log.unsure_s, held=True)


def iio_sysfs(bench: Workbench) -> Rig:
    bench.node("bus/iio/devices/iio:device1/name", "ina226")
    bench.node("bus/iio/devices/iio:device1/in_power2_scale", "0.5")
    node = bench.node("bus/iio/devices/iio:device1/in_power2_raw", "0")
    log = signal.Log(lambda host_s: str(round(signal.power_w(host_s) * 1000 / 0.5)))
    made = _nodes(bench, node, lambda: log.write(node), lambda: bench_iio(bench), Scope.DEVICE)
    return replace(made, seen_s=log.seen_s, unsure_s=log.unsure_s, held=True)


def bench_iio(bench: Workbench) -> PowerMeter:
    """The kernel's nodes are looked for below the rig's own folder."""
    from workers.power import iio, registry

    bench.patch.setitem(registry.METERS, "iio", lambda options: iio.iio(options, bench.folder / "sys"))
    return bench.metered({"iio": {}})


def rapl(bench: Workbench) -> Rig:
    """A counter that wraps every two joules."""
    folder = "class/powercap/intel-rapl:0"
    bench.node(f"{folder}/name", "package-0")
    bench.node(f"{folder}/max_energy_range_uj", "2000000")
    bench.node("class/powercap/intel-rapl:0:0/name", "core")
    node = bench.node(f"{folder}/energy_uj", "0")
    log = signal.Log(lambda host_s: str(round(signal.energy_j(host_s) * 1e6) % 2_000_000))
    host = Bench(bench.member("workstation", gpu_vendor="cpu"), sys=bench.folder / "sys")
    made = _nodes(bench, node, lambda: log.write(node), lambda: choose_source(host, PowerSource.RAPL), Scope.PACKAGE)
    return replace(made, seen_s=log.seen_s, unsure_s=log.unsure_s)


def _csv(
    bench: Workbench, head: str, line: Callable[[float], str], options: dict[str, Any], spacing_s: float = 0.005
) -> Rig:
    path = bench.folder / "meter.csv"
    writer = signal.CsvWriter(path, head, line, spacing_s)
    pause = bench.stack.enter_context(signal.repeated(writer, 0.01))

    def breaks() -> None:
        pause.acquire()
        with path.open("a") as file:
            file.write("overload,overload,overload\n")

    source = bench.metered({"csv": {"path": str(path), **options}})
    made = Rig(source, Scope.DEVICE, 0.02, breaks=breaks, mends=pause.release)
    return made if "time" in options else replace(made, seen_s=writer.seen_s, gathered=True)


def csv_own_clock(bench: Workbench) -> Rig:
    head = "# meter 7\nTime(ms),Main(mA),Main Voltage(V)\n-1,0,0\n"
    options = {
        "time": "Time(ms)", "time_unit": "ms", "current": "Main(mA)", "current_unit": "mA",
        "voltage": "Main Voltage(V)",
    }  # fmt: skip
    began_s = time.monotonic()  # its clock begins with it, and does not start again within a test
    line = lambda t: f"{(t - began_s) * 1000:.3f},{signal.power_w(t) / 4.0 * 1000:.4f},4.0"  # noqa: E731
    return _csv(bench, head, line, options)


def csv_wall_clock(bench: Workbench) -> Rig:
    shift_s = ahead_s(time.time_ns)
    options = {"time": "1", "time_is": "unix", "power": "2", "power_unit": "mW"}
    return _csv(bench, "", lambda t: f"{t + shift_s:.6f},{signal.power_w(t) * 1000:.3f}", options)


def csv_without_times(bench: Workbench) -> Rig:
    made = _csv(bench, "watts\n", lambda t: f"{signal.power_w(t):.5f}", {"power": "watts"})
    return replace(made, tolerance=0.05)  # its times are those at which its lines were written and found


def _nvml(bench: Workbench, *, counter: bool) -> Rig:
    vendor = vendors.Vendor()
    bench.install(vendors.nvml(vendor, counter=counter))
    board = Bench(bench.member("workstation", gpu="NVIDIA H200", gpu_vendor="nvidia"))
    return Rig(
        choose_source(board, PowerSource.NVML), Scope.BOARD, 0.02, handles=lambda: vendor.open,
        breaks=lambda: setattr(vendor, "broken", True), mends=lambda: setattr(vendor, "broken", False),
    )  # fmt: skip


def nvml_counter(bench: Workbench) -> Rig:
    return replace(_nvml(bench, counter=True), seen_s=vendors.nvml_seen_s)


def nvml_power(bench: Workbench) -> Rig:
    return _nvml(bench, counter=False)


def model(bench: Workbench) -> Rig:
    """A control socket that knows one phone; its model is counted on at ticks of 20 ms."""
    away = threading.Event()

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = json.loads(self.rfile.readline())
            assert asked == {"do": "truth", "phone": "bench"}
            counted_s = time.monotonic() // 0.02 * 0.02
            shift_s = signal.boot_ahead_s()
            phone = {"t_ns": round((counted_s + shift_s) * 1e9), "consumed_j": signal.energy_j(counted_s)}
            reply = {"ok": False, "error": "gone"} if away.is_set() else {"ok": True, "phones": [phone]}
            self.wfile.write(json.dumps(reply).encode() + b"\n")

    path = bench.folder / "control"
    server = socketserver.ThreadingUnixStreamServer(str(path), Answer)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    bench.stack.callback(server.server_close)
    bench.stack.callback(server.shutdown)
    member = bench.member(source=Source.VIRTUAL, profile="galaxy_s7")
    source = choose_source(Bench(member, virtual_control=path), PowerSource.MODEL)
    return Rig(source, Scope.DEVICE, 0.02, breaks=away.set, mends=away.clear, gain=False)


def odpm(bench: Workbench) -> Rig:
    """A rig of what the agent would have read every 50 ms since it was last asked, on its clock."""
    from workers.power.odpm import Odpm

    shift_s = signal.boot_ahead_s()
    asked_s = time.monotonic()

    def events() -> list[Rails]:
        nonlocal asked_s
        start_s, asked_s = asked_s, time.monotonic()
        times = [start_s + 0.05 * i for i in range(int((asked_s - start_s) / 0.05))]
        return [
            Rails(
                seq=i,
                t_ns=round((t + shift_s) * 1e9),
                energy_uws={"VSYS_PWR_GPU": round(signal.energy_j(t) * 1e6), "L3S_DDR": round(t * 1e5)},
            )
            for i, t in enumerate(times)
        ]

    return Rig(Odpm(), Scope.RAILS, 0.02, events=events)


PERFETTO = """
import os, signal, sys, time
sys.path.insert(0, {root!r})
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tests.contract.power.signal import energy_j

def messages():
    file = descriptor_pb2.FileDescriptorProto(name="trace.proto", package="p", syntax="proto2")
    def message(name, *fields):
        made = file.message_type.add(name=name)
        for field, number, kind in fields:
            one = made.field.add(name=field, number=number, label=3 if kind[0].isupper() else 1)
            one.type = {{"uint64": 4, "uint32": 13, "string": 9}}.get(kind, 11)
            if one.type == 11:
                one.type_name = ".p." + kind
    message("Descriptor", ("index", 1, "uint32"), ("rail_name", 2, "string"), ("subsys_name", 3, "string"),
            ("sampling_rate", 4, "uint32"))
    message("Energy", ("index", 1, "uint32"), ("timestamp_ms", 2, "uint64"), ("energy", 3, "uint64"))
    message("Rails", ("rail_descriptor", 1, "Descriptor"), ("energy_data", 2, "Energy"))
    message("Packet", ("timestamp", 8, "uint64"), ("clock", 58, "uint32"), ("power_rails", 40, "Rails"))
    message("Trace", ("packet", 1, "Packet"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Trace"))

config = sys.stdin.read()
assert "collect_power_rails: true" in config and "--background" in sys.argv and "--txt" in sys.argv
out = sys.argv[sys.argv.index("-o") + 1]
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
Trace = messages()
trace = Trace()


def ahead():
    before, there, after = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.monotonic()
    return after - before, there - (before + after) / 2


shift = min(ahead() for _ in range(3))[1]
rails = trace.packet.add(timestamp=7, clock=6).power_rails.add()
rails.rail_descriptor.add(index=3, rail_name="VSYS_PWR_GPU", subsys_name="GPU", sampling_rate=1023)
if pid := os.fork():
    print(pid)
    sys.exit(0)
os.setsid()
null = os.open(os.devnull, os.O_RDWR)
for descriptor in (0, 1, 2):
    os.dup2(null, descriptor)
give_up_at = time.monotonic() + 60
while not ended and time.monotonic() < give_up_at:
    ms = int((time.monotonic() + shift) * 1000)
    energy = energy_j(ms / 1000 - shift)
    rails = trace.packet.add(timestamp=ms * 1000000).power_rails.add()
    rails.energy_data.add(index=3, timestamp_ms=ms, energy=round(energy * 1e6))
    time.sleep(0.05)
if not os.path.exists(out + ".broken"):
    open(out, "wb").write(trace.SerializeToString())
"""
"""A `perfetto` that records the known signal as one rail, and writes its trace with Google's own protobuf."""


def perfetto(bench: Workbench) -> Rig:
    from workers.power.perfetto import Perfetto

    programs, traces = bench.folder / "bin", bench.folder / "traces"
    programs.mkdir()
    traces.mkdir()
    script = programs / "perfetto"
    root = str(Path(__file__).parents[3])
    script.write_text(f"#!{sys.executable}\n" + textwrap.dedent(PERFETTO.format(root=root)))
    script.chmod(0o755)
    bench.patch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    broken = traces / "pocketfarm.pftrace.broken"
    return Rig(
        Perfetto(bench.member().connection, str(traces)), Scope.RAILS, 0.02, breaks=broken.touch, mends=broken.unlink
    )


def csv_of_a_slow_meter(bench: Workbench) -> Rig:
    """Momentary readings 30 ms apart: they are not averaged, and trapezoids join them."""
    shift_s = ahead_s(time.time_ns)
    options = {"time": "1", "time_is": "unix", "power": "2"}
    return _csv(bench, "", lambda t: f"{t + shift_s:.6f},{signal.power_w(t):.6f}", options, spacing_s=0.03)


RIGS: tuple[Callable[[Workbench], Rig], ...] = (
    monsoon, joulescope, ppk2, libiio, hwmon, iio_sysfs, rapl, csv_own_clock, csv_wall_clock, csv_without_times,
    csv_of_a_slow_meter,
    nvml_counter, nvml_power, model, odpm, perfetto,
)  # fmt: skip


@contextmanager
def workbench(folder: Path) -> Iterator[Workbench]:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        yield Workbench(folder, patch, stack)
