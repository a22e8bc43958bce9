"""The engine that runs ncnn's own benchmark, from a folder that a person brings."""
