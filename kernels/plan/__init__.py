"""The plan that the agent executes: its form, validation, data movement, an interpreter."""
