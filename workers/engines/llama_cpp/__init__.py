"""The engine that runs llama.cpp's llama-bench, from a folder that a person brings."""
