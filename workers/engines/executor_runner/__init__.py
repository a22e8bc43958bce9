"""The engine that runs ExecuTorch's executor_runner, from a folder that a person brings."""
