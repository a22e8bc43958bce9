"""The system of a phone: files and rights, properties, log, processes, screen and sleep."""
