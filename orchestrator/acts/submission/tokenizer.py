"""The tokenizer that a language model's file brings along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.errors import InputError, ModelError
from kernels.frontend.gguf import is_gguf, read_header
from kernels.frontend.tokens import MOST_TOKENS, Tokens
from orchestrator.model.quantity import counted

if TYPE_CHECKING:
    import tokenizers

_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CASED = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {
    "gpt-2": [_WORDS],
    "smollm": [r"\p{N}", _WORDS],
    "llama-bpe": [_CASED % "{1,3}"],
    "qwen2": [_CASED % ""],
}
"""The ways in which texts are cut before pairs are joined, by `tokenizer.ggml.pre`; from the models' own
`tokenizer.json`."""
_SPACE = "\u2581"
_USER_DEFINED = 4
"""The type of words that are found in a text before all others."""


def tokens_of(model: Path, text: str) -> Tokens:
    """The tokens of a text, by the tokenizer of a GGUF file, or the `tokenizer.json` of a model's folder; with the one
    that begins a text where the model wants it. Words for special tokens are text as others are.

    Raises ModelError where there is no tokenizer, or none that is known; InputError for a text without tokens.
    """
    try:
        import tokenizers
    except ImportError as e:
        raise ModelError(f"{model}: a text needs the package tokenizers: pip install 'pocketfarm[text]'") from e
    if is_gguf(model):
        read_header(model)  # trusts no length, as the package gguf does
        try:
            found, begin = _of_gguf(model)
        except ModelError:
            raise
        except Exception as e:  # of a vocabulary that does not fit its pairs, both packages raise what they like
            raise ModelError(f"{model}: its tokenizer cannot be read: {e}; convert the model again") from e
        ids = [*begin, *found.encode(text, add_special_tokens=False).ids]
    else:
        file = (model if model.is_dir() else model.parent) / "tokenizer.json"
        if not file.is_file():
            raise ModelError(f"{model}: there is no tokenizer.json beside it: put it there, or give `tokens`")
        ids = tokenizers.Tokenizer.from_file(str(file)).encode(text).ids
    if not 0 < len(ids) <= MOST_TOKENS:
        raise InputError(f"the text has {counted(len(ids), 'token')}; give one of 1 to {MOST_TOKENS}")
    return np.array(ids, np.int64)


def _of_gguf(path: Path) -> tuple[tokenizers.Tokenizer, list[int]]:
    """The tokenizer, and what begins a text."""
    import tokenizers
    from gguf import GGUFReader

    fields = GGUFReader(path).fields

    def said(name: str, usual: Any = None) -> Any:
        field = fields.get(f"tokenizer.ggml.{name}")
        return usual if field is None else field.contents()

    kind, words = said("model"), said("tokens") or []
    if kind == "gpt2":
        found = _of_bytes(path, words, said("merges") or [], said("pre", "gpt-2"))
    elif kind == "llama":
        prefix = bool(said("add_space_prefix", True))
        found = _of_scores(words, said("scores") or [], said("unknown_token_id", 0), prefix=prefix)
    else:
        raise ModelError(f"{path}: its tokenizer is {kind!r}; gpt2 and llama are known: give `tokens`, their numbers")
    own = [word for word, told in zip(words, said("token_type") or [], strict=False) if told == _USER_DEFINED]
    found.add_tokens([tokenizers.AddedToken(word, normalized=False) for word in own])
    begins = bool(said("add_bos_token", kind == "llama" or said("pre") == "llama-bpe"))
    return found, [int(said("bos_token_id"))] if begins and said("bos_token_id") is not None else []


def _of_bytes(path: Path, words: list[str], merges: list[str], cut: str) -> tokenizers.Tokenizer:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    if cut not in _SPLITS:
        known = ", ".join(_SPLITS)
        raise ModelError(f"{path}: it cuts texts as {cut!r} does; known are {known}: give `tokens`, their numbers")
    pairs = [(one, two) for one, _, two in (each.partition(" ") for each in merges)]
    vocabulary = {word: number for number, word in enumerate(words)}
    found = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs, ignore_merges=cut == "llama-bpe"))
    splits = [pre_tokenizers.Split(Regex(each), "isolated") for each in _SPLITS[cut]]
    found.pre_tokenizer = pre_tokenizers.Sequence(
        [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return found


def _of_scores(words: list[str], scores: list[float], unknown: int, *, prefix: bool) -> tokenizers.Tokenizer:
    """Pairs are joined into the word of the highest score first, as SentencePiece does."""
    from tokenizers import Tokenizer, models, normalizers

    vocabulary = {word: number for number, word in enumerate(words)}
    pairs = [
        (-scores[number], vocabulary[word[:at]], vocabulary[word[at:]], word[:at], word[at:])
        for word, number in vocabulary.items()
        for at in range(1, len(word))
        if word[:at] in vocabulary and word[at:] in vocabulary
    ]
    merges = [(one, two) for *_, one, two in sorted(pairs)]
    found = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, fuse_unk=True, unk_token=words[int(unknown)])
    )
    spaces = normalizers.Replace(" ", _SPACE)
    found.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), spaces]) if prefix else spaces
    return found
