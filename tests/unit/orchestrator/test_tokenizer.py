"""Tokens of texts: those that the package tokenizers gives, which learnt the words of a GGUF file."""

from __future__ import annotations

from pathlib import Path
from random import Random

import gguf
import numpy as np
import pytest

from kernels.errors import ModelError
from orchestrator.acts.submission.tokenizer import tokens_of

PIECES = (
    "ab",
    "ba",
    "n",
    "tion",
    "the",
    "It's",
    "12345",
    "7",
    "é",
    "你好",
    "🎉",
    "x_1",
    "--",
    "?!",
    "\n",
    "\t",
    "  ",
    "\r\n",
)


def learnt(kind: str, random: Random) -> tuple[object, list[str], dict[str, object]]:
    """Return a tokenizer that was trained on drawn texts, its words, and what GGUF says of it."""
    tokenizers = pytest.importorskip("tokenizers")
    texts = [drawn(random) for _ in range(200)]
    if kind == "gpt2":
        made = tokenizers.Tokenizer(tokenizers.models.BPE())
        made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=420, initial_alphabet=letters, show_progress=False)
        made.train_from_iterator(texts, trainer)
        import json

        merges = [" ".join(each) for each in json.loads(made.to_str())["model"]["merges"]]
        said: dict[str, object] = {"pre": "gpt-2", "merges": merges}
    else:
        bytes_ = [f"<0x{number:02X}>" for number in range(256)]
        made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        made.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=700, special_tokens=["<unk>", *bytes_], show_progress=False, limit_alphabet=40
        )
        made.train_from_iterator([text.replace(" ", "\u2581") for text in texts], trainer)
        said = {"add_space_prefix": False, "unknown_token_id": 0, "bos_token_id": 3, "add_bos_token": True}
    words = [made.id_to_token(number) for number in range(made.get_vocab_size())]
    return made, words, said


def drawn(random: Random) -> str:
    return "".join(random.choice((*PIECES, " ", " ")) for _ in range(random.randrange(1, 30)))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_texts_have_the_tokens_of_the_tokenizer_itself(kind: str, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    made, words, said = learnt(kind, random)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tokenizer_model(kind)
    writer.add_token_list(words)
    if kind == "llama":  # the earlier a pair was learnt, the higher its word's score
        writer.add_token_scores([-float(number) for number in range(len(words))])
    for name, value in said.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, str: writer.add_string}.get(type(value), writer.add_array)
        add(f"tokenizer.ggml.{name}", value)  # type: ignore[arg-type]
    writer.add_tensor("t", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for _ in range(12):
        text = drawn(random)
        found = tokens_of(tmp_path / "m.gguf", text).tolist()
        own = made.encode(text, add_special_tokens=False).ids  # type: ignore[attr-defined]
        assert found == ([3, *own] if kind == "llama" else own), text
    made.save(str(tmp_path / "tokenizer.json"))  # type: ignore[attr-defined]
    (tmp_path / "m.onnx").touch()
    assert tokens_of(tmp_path / "m.onnx", text).tolist() == own


def test_a_model_without_a_tokenizer_is_told(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "m.onnx").touch()
    with pytest.raises(ModelError, match=r"no tokenizer\.json beside it.*or give `tokens`"):
        tokens_of(tmp_path / "m.onnx", "once")
