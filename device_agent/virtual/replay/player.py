"""The link between a phone and the agents that replay inside."""

from __future__ import annotations

import json
from pathlib import Path

from .recording import Recording


class Player:
    """Two files in `folder`.

    `latency.json` has the latencies by network. `running.json` is there while inferences are replayed, and says of
    which network and since when.
    """

    def __init__(self, recording: Recording, folder: Path) -> None:
        self._recording = recording
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        latencies = {name: network.latency_ms for name, network in recording.networks.items()}
        (folder / "latency.json").write_text(json.dumps(latencies))

    def power_w(self, at_ns: int) -> float | None:
        """Recorded power at a CLOCK_BOOTTIME; None where nothing is replayed."""
        try:
            running = json.loads((self.folder / "running.json").read_text())
            since_ns, name = int(running["since_ns"]), str(running["network"])
            Path(f"/proc/{int(running['pid'])}").stat()
        except (OSError, ValueError, KeyError):  # nothing runs, or it ended without a word
            return None
        return self._recording.networks[name].power.at(max(0, at_ns - since_ns) / 1e9)
