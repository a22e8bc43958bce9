"""How a device is reached: adb, or this host itself."""
