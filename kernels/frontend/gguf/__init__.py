"""GGUF files: language models as llama.cpp stores them, read as the decoders that exporters to ONNX write."""

from .header import read_header
from .loading import check_gguf, decoder_file, is_gguf, load_gguf, unpacked

__all__ = ["check_gguf", "decoder_file", "is_gguf", "load_gguf", "read_header", "unpacked"]
