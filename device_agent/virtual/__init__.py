"""Virtual phones: they speak the phone's side of the ADB protocol, and run the real agent inside.

    python -m device_agent.virtual --state DIR --phones galaxy_s7,nexus_5

Start them from Python with `device_agent.virtual.launch.start_phones`; give them faults with
`device_agent.virtual.control.ControlClient`.
"""
