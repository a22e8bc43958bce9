"""The engine that runs MNN's own benchmark of networks, from a folder that a person brings."""
