"""`python -m virtual_phones.control`: give faults from a terminal, take them back, and ask for the truth."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from virtual_phones.faults import FAULT

from .client import ControlClient, Request


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m virtual_phones.control", description="Speak to the control socket of virtual phones."
    )
    parser.add_argument("socket", type=Path)
    parser.add_argument("phone", help="the phone's serial, its adb serial, or *")
    verbs = parser.add_subparsers(dest="do", required=True)
    verbs.add_parser("list", help="how the phones are now")
    verbs.add_parser("truth", help="how they are now, energies integrated up to this moment")
    verbs.add_parser("clear", help="take back all faults")
    fault = verbs.add_parser("fault", help="give the phone a fault")
    fault.add_argument("name", help="unplug, hang, slow, supply, throttle, clock_cap, background_load, ...")
    for number in ("--seconds", "--factor", "--temp-c", "--level", "--share", "--each-s"):
        fault.add_argument(number, type=float)
    for count in ("--cores", "--work-group", "--status"):
        fault.add_argument(count, type=int)
    fault.add_argument("--kernel")
    fault.add_argument("--build")
    fault.add_argument("--tools", type=lambda text: text.split(","), metavar="NAME,...")
    for switch in ("--on", "--visible", "--with-data", "--kills"):
        fault.add_argument(switch, type=lambda text: {"on": True, "off": False}[text], metavar="on|off")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line. Prints the phones as JSON; 1 with a message where the request was refused."""
    options = _parser().parse_args(arguments)
    request: dict[str, Any] = {"do": options.do, "phone": options.phone}
    try:
        if options.do == "fault":
            asked = {name: value for name, value in vars(options).items() if value is not None}
            given = {name: value for name, value in asked.items() if name not in ("socket", "phone", "do", "name")}
            request["fault"] = FAULT.validate_python({"fault": options.name, **given})
        phones = ControlClient(options.socket).call(Request.model_validate(request))
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps([phone.model_dump(mode="json") for phone in phones]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
