"""The engine that runs MNN's own benchmark of language models, from a folder that a person brings."""
