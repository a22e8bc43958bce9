"""Devices that come and go: admitted, announced, and put back as they were before a crash."""
