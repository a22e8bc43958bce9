"""Every reader of what comes from outside: its seeds, and the errors in which it may refuse."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import struct
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import onnx
from onnx import TensorProto, helper
from pydantic import ValidationError

from kernels.errors import CompileError
from kernels.frontend.gguf import load_gguf
from kernels.frontend.onnx import load_onnx
from kernels.frontend.tokens import read_texts
from orchestrator import spec
from orchestrator.acts.elf import NotElf, read_elf
from orchestrator.acts.submission.choices_file import read_choices
from orchestrator.acts.submission.tokenizer import tokens_of
from orchestrator.energy.perfetto_trace import rails_of_trace
from orchestrator.exchange import baselines
from orchestrator.exchange.power_traces import read_trace
from orchestrator.exchange.series import read_series
from orchestrator.model.device import Device
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import DeviceSick, ModelFileError, SpecError, TableError, Unsupported
from orchestrator.model.experiment.engine_settings import Unread
from orchestrator.model.live.announcement import Progress
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Record
from tests.engine_outputs import outputs
from tests.engine_outputs import read as read_output
from tests.unit.comparison.made import measured
from tests.unit.kernels.front.gguf_models import write_decoder
from tests.unit.orchestrator import make
from virtual_phones.adb.key import read_public_key
from virtual_phones.adb.message import MAX_PAYLOAD, VERSION, Message, ProtocolError, encode_header, read_message
from virtual_phones.control.client import Request
from virtual_phones.shell.grammar import parse as parse_shell
from virtual_phones.shell.words import GrammarError
from workers.connection import batch
from workers.connection.adb import parse_devices
from workers.connection.base import ShellResult
from workers.devices import dumpsys
from workers.devices.agent_journal import Garbage, Journal
from workers.devices.momentary import parse_nodes
from workers.devices.tools import HASHES, OPTIONAL, REQUIRED, missing_tools
from workers.session.owner import Claimant, keeper_of
from workers.session.saved_settings import JournalUnreadable, parse_changes, read_changes
from workers.session.supply.journal import SupplyJournal, cut_supplies

Errors = tuple[type[Exception], ...]


@dataclass(frozen=True)
class Boundary:
    """`read` takes any bytes: it returns, or raises one of `refuses`; everything else is a fault of ours."""

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    refuses: Errors = ()
    inputs: int = 2000
    """Random ones in each run of the tests; by hand it is a matter of time."""


def _npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


_TOKENS = _npy(np.arange(5))


def _text(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: parse(data.decode(errors="replace"))


def _in_file(read: Callable[[Path], object], name: str) -> Callable[[bytes], object]:
    def reading(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(data)
            return read(path)

    return reading


def _experiments() -> list[bytes]:
    folder = Path(__file__).parents[2] / "experiments"
    return [path.read_bytes() for path in sorted(folder.glob("*.yaml"))[:6]]


def _models() -> list[bytes]:
    found = []
    value = helper.make_tensor_value_info
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 3, 3], [0.5] * 108)
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [1, -1])
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["y"], ["z"]),
        helper.make_node("MaxPool", ["z"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "s"], ["o"]),
    ]
    x, o = value("x", TensorProto.FLOAT, [1, 3, 8, 8]), value("o", TensorProto.FLOAT, [1, 64])
    for count in (4, 2):
        out = [o] if count == 4 else [value("z", TensorProto.FLOAT, [1, 4, 8, 8])]
        graph = helper.make_graph(nodes[:count], "g", [x], out, [weight, shape][: count // 2])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        found.append(model.SerializeToString())
    assert all(onnx.load_from_string(each) for each in found)
    return found


def _decoders() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.gguf")
        write_decoder(path, "qwen3", np.random.default_rng(0))
        return [path.read_bytes()]


def _tokenizers() -> list[bytes]:
    """A GGUF file's words, with pairs that are joined, and with scores."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("gpt2", "llama"):
            writer = gguf.GGUFWriter(path := Path(folder, kind), "llama")
            writer.add_tokenizer_model(kind)
            writer.add_token_list(["a", "b", "ab", "<0x0A>", "<unk>"])
            writer.add_token_merges(["a b"]) if kind == "gpt2" else writer.add_token_scores([0.0] * 5)
            writer.add_token_types([1, 1, 4, 6, 2])
            writer.add_unk_token_id(4)
            writer.add_tensor("t", np.zeros(4, np.float32))
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            found.append(path.read_bytes())
    return found


def _records() -> list[bytes]:
    return [make.record(make.job(), attempt=1, token=1).model_dump_json().encode()]


def _assignments() -> list[bytes]:
    placed = {"serial": "A", "host": "h", "attempt": 1, "token": 1, "ttl_s": 9.0}
    job = make.job()
    return [json.dumps(placed | {"job_id": job.job_id, "job": job.model_dump(mode="json")}).encode()]


EVENTS = (
    b'{"event":"warning","seq":0,"t_ns":1,"code":"x","message":"y"}\n'
    b'{"event":"sample","seq":1,"t_ns":2,"phase":"timed","index":0,"start_ns":1,"duration_ns":5}\n'
)
BATTERY = b"Current Battery Service state:\n  USB powered: true\n  level: 83\n  scale: 100\n  temperature: 251\n"
THERMAL = (
    b"Thermal Status: 1\nHAL Ready: true\nCurrent temperatures from HAL:\n"
    b"\tTemperature{mValue=37.5, mType=3, mName=skin, mStatus=0}\n"
    b"\tTemperature{mValue=40.0, mType=0, mName=c, mStatus=0}\n"
)
POWER = b"Power Manager State:\n  mWakefulness=Awake\n  mStayOn=true\n  Screen off timeout: 30000 ms\n"
NODES = (
    b"/sys/class/power_supply/battery/current_now:-43000\n/sys/class/power_supply/battery/voltage_now:3991000\n"
    b"/sys/class/power_supply/battery/status:Discharging\n/sys/class/kgsl/kgsl-3d0/gpuclk:133\n"
    b"/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq:307200\n"
)
DISK = b"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/block/dm-0 1000 500 500 50% /data\n"
TOOLS = "\n".join([*REQUIRED, *HASHES, *(f"/system/bin/{name}" for name in OPTIONAL)]).encode()
SETTINGS = b'{"serial": "A", "changed": {"screen": {"screen_brightness": "77"}, "awake": {"stay_on": "0"}}}'
SUPPLIES = (
    b'{"serial": "A", "way": "root", "told": {"path": "/sys/x"}}',
    b'{"serial": "A", "way": "command", "told": {"cut": "true", "restore": "true"}}',
    b'{"serial": "A", "way": "virtual", "told": {"control": "/x"}}',
)
_TRACE = bytes.fromhex("0a12c2020f0a0508001201721206080010051809")
_KEY = base64.b64encode(struct.pack("<II256s256sI", 64, 7, bytes([193] * 256), bytes(256), 65537)) + b" a@b"
CLAIMS = (
    b"12.50 40.00\n0f-boot\ntotal 0\nlrwxrwxrwx 1 shell shell 20 2024-01-01 10:00 3 -> lock:a:farm:7:0f-boot:60.00\n"
)
UNTIL = CLAIMS + b"lrwxrwxrwx 1 shell shell 5 2024-01-01 10:00 3.until -> 72.50\n"


def _supply(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "supply", "A.json")
        path.parent.mkdir()
        path.write_bytes(data)
        cut_supplies(Path(folder))
        _ = SupplyJournal(Path(folder), "A").needs_device


class _Phone:
    """Answers one thing to every command."""

    serial, address, folder = "A", "a:1", "/data/local/tmp/pocketfarm"

    def __init__(self, said: bytes) -> None:
        self._said = said

    def shell(self, _argv: object, **_: object) -> ShellResult:
        return ShellResult(0, self._said, b"")

    def shells(self, commands: Sequence[object], **_: object) -> list[ShellResult]:
        return [self.shell(command) for command in commands]


def _wire(data: bytes) -> None:
    async def read() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        while not reader.at_eof():
            message = await read_message(reader)
            assert len(message.data) <= MAX_PAYLOAD

    asyncio.run(read())


def _messages() -> list[bytes]:
    greeting = Message(b"CNXN", VERSION, 4096, b"host::")
    others = (Message(b"AUTH", 2, 0, bytes(256)), Message(b"OPEN", 1, 0, b"shell:ls\0"))
    return [encode_header(each) + each.data for each in (greeting, *others)]


def _varied(data: bytes) -> None:
    """Read it as `dumpsys`, `getprop`, `df`, /proc and adb print: a phone that prints less is no error."""
    text = data.decode(errors="replace")
    for parse in (
        *(dumpsys.parse_battery, dumpsys.parse_thermal, dumpsys.parse_power, dumpsys.parse_properties),
        *(dumpsys.parse_free_bytes, dumpsys.parse_memory_bytes, parse_devices),
    ):
        parse(text)
    batch.split(ShellResult(0, data, data), "5e")


_SERIES = b"series,time,value\na,2026-11-23,1.5\nb,2026-11-23T04:00:00Z,2\na,2026-11-24,1e-3\n"
_TRACES = (
    b"time;current [mA];voltage [V]\n0,0;500,5;4\n0,5;501;4,01\n1,0;502;4\n2,5;1;4\n",
    b"#time,current,voltage,power,charge,energy\n0.0,0.4,4.7,1.9,0,0\n0.5,0.4,4.7,1.9,0.2,0.95\n",
    b"Time(ms),Main(mA),Main Voltage(V),\n0,np.float64(1),4,\n1,np.float64(2),4,\n",
    bytes.fromhex("0a0e4001b2020918a0c21e388092f4010a12408094ebdc03b2020918a0c21e388092f401"),
)
_CHOICES = (
    b'{"schema_version": 1, "origin": "here", "layers": [{"device": "SM-G930*", "layer": "conv1", '
    b'"best": {"algorithm": "dot", "granularity": 6}, "worst": {"granularity": 1}}]}'
)
_BASELINE = baselines.as_bytes(["e-1"], measured([10.0, 11.0], options={"threads": 2}, provenance={"agent": "1"}))


def _of_every_tool(text: str) -> None:
    for output in _ONE_OF_EACH:
        with suppress(Unread):
            read_output(output, text)


_ONE_OF_EACH = list({each.engine: each for each in outputs() if each.ms}.values())
_BUILD = b'{"engine":"llama.cpp","abi":"x86","version":"b1","program":"a","files":{"a":"00"},"bytes":3}'


def _elf(wide: bool) -> bytes:
    """A library that needs `libm.so`, as short as it can be."""
    head, word, entry = (64, "Q", 56) if wide else (52, "I", 32)
    strings, at = b"\0libm.so\0", head + 2 * entry
    pair = "<qQ" if wide else "<iI"
    dynamic = b"".join(struct.pack(pair, *each) for each in ((1, 1), (5, at), (0, 0)))
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    start = struct.pack(f"<HHI3{word}IHHHHHH", 3, 62 if wide else 3, 1, 0, head, 0, 0, head, entry, 2, 0, 0, 0)
    size = at + len(strings) + len(dynamic)

    def header(kind: int, offset: int, length: int) -> bytes:
        if wide:
            return struct.pack("<IIQQQQQQ", kind, 4, offset, offset, offset, length, length, 1)
        return struct.pack("<IIIIIIII", kind, offset, offset, offset, length, length, 4, 1)

    headers = header(1, 0, size) + header(2, at + len(strings), len(dynamic))
    return ident + start + headers + strings + dynamic


_ELF, _ELF32 = _elf(wide=True), _elf(wide=False)

BOUNDARIES: dict[str, Boundary] = {
    "spec": Boundary(_text(spec.parse), _experiments, (SpecError,), inputs=200),
    "gguf": Boundary(_in_file(load_gguf, "m.gguf"), _decoders, (CompileError,), inputs=100),
    "tokens": Boundary(_in_file(read_texts, "t.txt"), lambda: [b"[[12],[34]]", _TOKENS], (CompileError,), inputs=300),
    "tokenizer": Boundary(
        _in_file(lambda path: tokens_of(path, "ab abab\n"), "m.gguf"), _tokenizers, (CompileError,), inputs=100
    ),
    "onnx": Boundary(_in_file(load_onnx, "m.onnx"), _models, (CompileError,), inputs=400),
    "events": Boundary(lambda data: Journal("A").feed(data), lambda: [EVENTS], (Garbage,)),
    "dumpsys": Boundary(
        _varied,
        lambda: [
            BATTERY,
            THERMAL,
            POWER,
            DISK,
            b"MemTotal:  3809036 kB\n",
            b"[ro.serialno]: [x]\n",
            b"a device usb:1\n",
        ],
    ),
    "sysfs": Boundary(_text(lambda text: parse_nodes(text, 0.0)), lambda: [NODES]),
    "perfetto": Boundary(rails_of_trace, lambda: [_TRACE], (ValueError,)),
    "adb_wire": Boundary(_wire, _messages, (ProtocolError, asyncio.IncompleteReadError), inputs=400),
    "adb_key": Boundary(_in_file(read_public_key, "adbkey.pub"), lambda: [_KEY], (ValueError,), inputs=100),
    "shell": Boundary(
        _text(parse_shell),
        lambda: [b"a=1; cat <x | grep 'y' && (ls > z 2>&1) || echo \"$(id) $a\" &"],
        (GrammarError,),
        inputs=300,
    ),
    "control": Boundary(
        Request.model_validate_json,
        lambda: [b'{"do": "fault", "phone": "*", "fault": {"fault": "slow", "factor": 3}}'],
        (ValidationError,),
    ),
    "settings_journal": Boundary(parse_changes, lambda: [SETTINGS], (ValueError,)),
    "settings_file": Boundary(_in_file(read_changes, "A.json"), lambda: [SETTINGS], (JournalUnreadable,), inputs=200),
    "supply_journal": Boundary(_supply, lambda: list(SUPPLIES), (JournalUnreadable,), inputs=200),
    "owner": Boundary(lambda data: keeper_of(_Phone(data), Claimant("l")), lambda: [CLAIMS, UNTIL], (DeviceSick,)),
    "tools": Boundary(lambda data: missing_tools(_Phone(data)), lambda: [TOOLS], (Unsupported,), inputs=300),
    "baseline": Boundary(_in_file(baselines.read, "v1.json"), lambda: [_BASELINE], (TableError,), inputs=200),
    "power_trace": Boundary(_in_file(read_trace, "a.csv"), lambda: list(_TRACES), (TableError,), inputs=200),
    "choices": Boundary(
        _in_file(lambda path: read_choices(path, "c"), "c.json"), lambda: [_CHOICES], (ModelFileError,), inputs=200
    ),
    "elf": Boundary(read_elf, lambda: [_ELF, _ELF32], (NotElf,)),
    "engine_build": Boundary(_in_file(EngineBuild.read, "b.json"), lambda: [_BUILD], (ModelFileError,), inputs=200),
    "engine_output": Boundary(
        _text(_of_every_tool),
        lambda: [each.text.encode() for each in outputs() if each.ms],
        inputs=700,
    ),
    "series": Boundary(_in_file(read_series, "s.csv"), lambda: [_SERIES], (TableError,), inputs=200),
    "record": Boundary(Record.model_validate_json, _records, (ValidationError,)),
    "device_row": Boundary(
        Device.model_validate_json, lambda: [make.device().model_dump_json().encode()], (ValidationError,)
    ),
    "assignment": Boundary(Assignment.model_validate_json, _assignments, (ValidationError,)),
    "progress": Boundary(
        Progress.model_validate_json,
        lambda: [
            b'{"serial":"A","job_id":"j","attempt":1,"token":1,"label":"l","phase":"claimed","done":0,"total":0,"since":1.0}'
        ],
        (ValidationError,),
    ),
}
