"""Find devices, hold sessions with them, drive the agent, return records."""
