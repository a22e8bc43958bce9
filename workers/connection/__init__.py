"""Connections to devices: adb, or this host itself."""
