"""GGUF files: language models as llama.cpp stores them, read as the decoders that exporters to ONNX write."""

from .loading import decoder_file, is_gguf, load_gguf, unpacked

__all__ = ["decoder_file", "is_gguf", "load_gguf", "unpacked"]
