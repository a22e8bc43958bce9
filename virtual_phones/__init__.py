"""Virtual phones: they speak the phone's side of the ADB protocol, and run the real agent inside.

    python -m virtual_phones --state DIR --phones galaxy_s7,nexus_5

Start them from Python with `virtual_phones.launch.start_phones`; give them faults with
`virtual_phones.control.ControlClient`.
"""
