"""perfetto, as far as it reads power rails: `perfetto --background -c - --txt -o FILE`, which SIGTERM ends.

It reads the rails through the power HAL, so that nodes that are closed to the shell do not matter. The trace has these
fields of perfetto's `power_rails.proto`: Trace.packet = 1; TracePacket.power_rails = 40; PowerRails.rail_descriptor = 1
{index = 1, rail_name = 2} and PowerRails.energy_data = 2 {index = 1, timestamp_ms = 2, energy = 3}.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from virtual_phones.hardware.odpm import rail_energies_uws
from virtual_phones.phone import Phone
from virtual_phones.programs.streams import read_all
from virtual_phones.shell.table import Call, CommandError

from .table import command

PERIOD_S = 0.1
"""The shortest that a configuration may ask for."""
PACKET, POWER_RAILS, DESCRIPTOR, ENERGY = 1, 40, 1, 2


@command("perfetto")
async def perfetto(call: Call) -> int:
    match call.arguments:
        case ["--background", "-c", "-", "--txt", "-o", path]:
            pass
        case _:
            raise CommandError("a virtual phone knows `perfetto --background -c - --txt -o FILE` only")
    if b"collect_power_rails: true" not in await read_all(call.io.stdin):
        raise CommandError("a virtual phone records power rails only: the configuration does not ask for them")
    target = call.tree.writable_file(path, call.shell.cwd)
    target.touch()
    pid = call.phone.start_service(_record(call.phone, target))
    await call.io.out(f"{pid}\n".encode())
    return 0


async def _record(phone: Phone, target: Path) -> None:
    """Poll the rails until cancelled; the trace is written at the end."""
    names = list(rail_energies_uws(phone.profile.odpm, 0.0))
    packets = [b"".join(_message(DESCRIPTOR, _number(1, i) + _message(2, n.encode())) for i, n in enumerate(names))]
    try:
        while True:
            phone.advance()
            t_ms = phone.ticked_ns // 1_000_000
            energies = rail_energies_uws(phone.profile.odpm, phone.body.consumed_j).values()
            packets.append(
                b"".join(
                    _message(ENERGY, _number(1, index) + _number(2, t_ms) + _number(3, energy))
                    for index, energy in enumerate(energies)
                )
            )
            await asyncio.sleep(PERIOD_S)
    finally:
        target.write_bytes(b"".join(_message(PACKET, _message(POWER_RAILS, rails)) for rails in packets))


def varint(value: int) -> bytes:
    """Return a number as protobuf writes it."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content
