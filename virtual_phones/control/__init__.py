"""The control socket of the virtual phones: one JSON object a line, one answer a line.

    {"do": "list"}                                                      -> {"ok": true, "phones": [...]}
    {"do": "fault", "phone": "virtual-galaxy_s7-0",
     "fault": {"fault": "unplug", "seconds": 5}}                        -> {"ok": true, "phones": [...]}
    {"do": "truth", "phone": "virtual-galaxy_s7-0"}                     -> {"ok": true, "phones": [...]}, up to now
    {"do": "clear", "phone": "*"}                                       -> {"ok": true, "phones": [...]}
    anything else                                                       -> {"ok": false, "error": "..."}

`python -m virtual_phones.control SOCKET PHONE fault unplug --seconds 5` speaks it from a terminal. A phone is
named by its own serial, its adb serial (127.0.0.1:PORT), or `*` for all.
"""

from .client import ControlClient, PhoneStatus

__all__ = ["ControlClient", "PhoneStatus"]
