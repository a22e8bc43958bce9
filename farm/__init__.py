"""The command line, the supervisor behind `farm up`, and the doctor."""
