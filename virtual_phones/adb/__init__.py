"""The phone's end of the ADB protocol: the cable, one connection, its messages, and the key that it trusts."""
