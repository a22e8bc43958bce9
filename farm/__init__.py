"""COMPOSES: the command line, the supervisor behind `farm up`, the doctor."""
