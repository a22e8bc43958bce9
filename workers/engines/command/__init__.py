"""The engine for programs of one's own: any command, by the farm's protocol (docs/howto/your-own-binary.md)."""
