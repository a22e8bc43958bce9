"""The link between a phone and the agents that replay inside."""

from __future__ import annotations

import json
from pathlib import Path

from .recording import Recording


class Player:
    """Files in `folder`.

    `times.json` has latencies and layers by network. `running.json` is there while inferences are replayed, and says of
    which network and cell and since when. `goes_on` is there where runs go on in the recording, `played.json` then
    says how far they are. `slow.json` names a build of the agent that is slower than others.
    """

    def __init__(self, recording: Recording, folder: Path) -> None:
        self._recording = recording
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        times = {name: network.model_dump(exclude={"power"}) for name, network in recording.networks.items()}
        (folder / "times.json").write_text(json.dumps(times))
        (folder / "goes_on").unlink(missing_ok=True)
        if recording.goes_on:
            (folder / "goes_on").touch()
        self.slow_down(None)

    def slow_down(self, slow: tuple[str, float] | None) -> None:
        """Let agents of a build, named by the beginning of its SHA-256, run for a share of the time from now on."""
        (self.folder / "slow.json").unlink(missing_ok=True)
        if slow is not None:
            fresh = self.folder / "slow.json.new"
            fresh.write_text(json.dumps({"build": slow[0], "share": slow[1]}))
            fresh.replace(self.folder / "slow.json")

    def power_w(self, at_ns: int) -> float | None:
        """Recorded power at a CLOCK_BOOTTIME; between runs the recording's idle power, whatever this machine does. None
        where none was recorded."""
        try:
            running = json.loads((self.folder / "running.json").read_text())
            since_ns, name, cell = int(running["since_ns"]), str(running["network"]), int(running.get("cell", -1))
            Path(f"/proc/{int(running['pid'])}").stat()
        except (OSError, ValueError, KeyError):  # nothing runs, or it ended without a word
            return self._recording.idle_w
        network = self._recording.networks[name]
        own = network.cells[cell].power if cell >= 0 else None
        return (own or network.power).at(max(0, at_ns - since_ns) / 1e9)
