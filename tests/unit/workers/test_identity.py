"""The name of a phone, whatever its connections do."""

from __future__ import annotations

import pytest

from orchestrator.model.device import Source
from orchestrator.model.errors import TransportLost
from workers.connection.base import ShellResult
from workers.devices.identity import Identity, Names, read_identity


class Phones:
    """The phones that answer, by address."""

    def __init__(self, **phones: Identity | None) -> None:
        self.at = phones

    def ask(self, address: str) -> Identity:
        if (identity := self.at.get(address)) is None:
            raise TransportLost("gone", device=address)
        return identity


RED, BLUE = Identity("R58", "boot-1"), Identity("R59", "boot-2")


def serial_of(names: Names, address: str) -> str | None:
    name = names.claim(address)
    return name.serial if name else None


def test_each_phone_has_its_own_name() -> None:
    names = Names(Phones(usb=RED, wifi=BLUE).ask)
    assert [serial_of(names, address) for address in ("usb", "wifi", "usb")] == ["R58", "R59", "R58"]


def test_a_second_connection_stands_by_until_the_first_is_gone() -> None:
    names = Names(Phones(usb=RED, wifi=RED).ask)
    assert (serial_of(names, "usb"), serial_of(names, "wifi")) == ("R58", None)
    assert names.speaks("usb") and not names.speaks("wifi")
    names.release("usb")
    assert serial_of(names, "wifi") == "R58"
    assert serial_of(names, "usb") is None, "the connection in use stays"


def test_a_name_is_remembered_while_the_phone_is_away() -> None:
    names = Names(Phones(usb=RED).ask)
    assert names.serial("usb") == "usb" and not names.is_known("usb")
    names.claim("usb")
    names.release("usb")
    assert names.serial("usb") == "R58" and names.speaks("usb")
    names.forget("usb")
    assert names.serial("usb") == "usb" and names.speaks("usb")


def test_another_phone_at_the_same_address() -> None:
    phones = Phones(wifi=RED)
    names = Names(phones.ask)
    names.claim("wifi")
    names.release("wifi")
    phones.at["wifi"] = BLUE
    assert serial_of(names, "wifi") == "R59"


def test_a_restarted_phone_on_two_cables_is_still_one() -> None:
    phones = Phones(usb=RED, wifi=RED)
    names = Names(phones.ask)
    names.claim("usb")
    phones.at["usb"] = phones.at["wifi"] = Identity("R58", "boot-3")
    assert names.claim("wifi") is None


def test_without_a_number_of_its_own_the_address_is_the_name() -> None:
    names = Names(Phones(usb=Identity("", "boot-1")).ask)
    name = names.claim("usb")
    assert name is not None and name.serial == "usb" and "no serial number of its own" in name.reason


def test_a_number_that_is_taken_by_another_phone() -> None:
    twin = Identity("R58", "boot-9")
    names = Names(Phones(usb=RED, wifi=twin, R58=twin).ask)
    names.claim("usb")
    name = names.claim("wifi")
    assert name is not None and name.serial == "wifi" and "the phone at usb has the same" in name.reason
    assert serial_of(names, "R58") == "R58-2", "its address is the other one's name"
    assert names.speaks("usb") and names.speaks("wifi") and names.speaks("R58")


def test_a_holder_that_does_not_answer_keeps_the_name() -> None:
    phones = Phones(usb=RED, wifi=RED)
    names = Names(phones.ask)
    names.claim("usb")
    phones.at["usb"] = None
    with pytest.raises(TransportLost):
        names.claim("wifi")
    assert not names.speaks("wifi")


@pytest.mark.parametrize(
    ("said", "serial"),
    [
        ("R58M42\n", "R58M42"),
        ("virtual-galaxy_s7-0\n", "virtual-galaxy_s7-0"),
        ("\n", ""),
        ("unknown\n", ""),
        ("0000000000000000\n", ""),
        ("local-cpu\n", ""),
        ("two words\n", ""),
        ("../x/y\n", ""),
    ],
)
def test_which_numbers_can_be_names(said: str, serial: str) -> None:
    class Phone:
        serial = address = "usb"
        folder = "/data/local/tmp"

        def shell(self, argv: list[str], **_: float) -> ShellResult:
            return ShellResult(0, said.encode() if argv[0] == "getprop" else b"boot-1\n", b"")

    assert read_identity(Phone()) == Identity(serial, "boot-1")  # type: ignore[arg-type]


def test_what_answers_says_whether_it_is_virtual() -> None:
    names = Names(Phones(a=Identity("V1", "boot-1", Source.VIRTUAL), b=RED).ask)
    assert names.source("a") is Source.PHONE
    for address in "ab":
        names.claim(address)
    names.release("a")
    assert (names.source("a"), names.source("b")) == (Source.VIRTUAL, Source.PHONE)
