"""Small networks of the families that `transformers` has: their layers and their exports, not their size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers  # type: ignore[import-not-found, unused-ignore]
from torch import nn

Inputs = tuple[torch.Tensor, ...]
WORDS, LONG, WIDE, HEADS = 300, 12, 64, 4
"""Words that there are, words of an input, features, heads of the attention."""


class Called(nn.Module):
    """A network by what it is given by name, giving one of its results."""

    def __init__(self, inner: nn.Module, names: tuple[str, ...], result: str, **words: Any) -> None:
        super().__init__()
        self.inner, self.names, self.result, self.words = inner, names, result, words

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        found = self.inner(**dict(zip(self.names, given, strict=True)), **self.words)
        out: torch.Tensor = getattr(found, self.result)
        return out


class _Step(nn.Module):
    """One word more, by what a decoder kept of those before."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, word: torch.Tensor, *kept: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cache = transformers.DynamicCache()
        for layer in range(len(kept) // 2):
            cache.update(kept[2 * layer], kept[2 * layer + 1], layer)
        found = self.inner(input_ids=word, past_key_values=cache, use_cache=True)
        parts = [part for layer in found.past_key_values.layers for part in (layer.keys, layer.values)]
        return (found.logits, *parts)


def _words() -> Inputs:
    return (torch.randint(3, WORDS, (1, LONG)),)


def _words_and_mask() -> Inputs:
    mask = torch.ones(1, LONG, dtype=torch.long)
    mask[0, -3:] = 0
    return (*_words(), mask)


def _many_words() -> Inputs:
    return (torch.randint(3, WORDS, (1, 128)),)


def _many_words_and_mask() -> Inputs:
    return (*_many_words(), torch.ones(1, 128, dtype=torch.long))


def _picture(extent: int) -> Callable[[], Inputs]:
    return lambda: (torch.randn(1, 3, extent, extent),)


_BERT: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": WIDE, "num_hidden_layers": 2, "num_attention_heads": HEADS,
    "intermediate_size": 2 * WIDE, "max_position_embeddings": 64,
}  # fmt: skip
_BERT_MINI: dict[str, Any] = {
    "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024,
}  # fmt: skip
_GPT2: dict[str, Any] = {"vocab_size": WORDS, "n_embd": WIDE, "n_layer": 2, "n_head": HEADS, "n_positions": 64}
_LLAMA: dict[str, Any] = {**_BERT, "num_key_value_heads": 2}
_T5: dict[str, Any] = {"vocab_size": WORDS, "d_model": WIDE, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
_WHISPER: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": WIDE, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_source_positions": 50,
    "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
_BART: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": WIDE, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
_VIT: dict[str, Any] = {
    "hidden_size": WIDE, "num_hidden_layers": 2, "num_attention_heads": HEADS, "intermediate_size": 128,
    "image_size": 64, "patch_size": 16,
}  # fmt: skip


def _of(kind: str, names: tuple[str, ...], result: str, config: dict[str, Any], **words: Any) -> nn.Module:
    """A network of this class with its own configuration."""
    theirs = getattr(transformers, kind)
    return Called(theirs(theirs.config_class(**config)), names, result, **words)


IDS, MASKED, PIXELS = ("input_ids",), ("input_ids", "attention_mask"), ("pixel_values",)
HIDDEN, LOGITS = "last_hidden_state", "logits"


def _whisper_decoder() -> nn.Module:
    whole = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**_WHISPER))
    return Called(whole.model.decoder, ("input_ids", "encoder_hidden_states"), HIDDEN, use_cache=False)


def _text_tower() -> nn.Module:
    config = {**_BERT, "bos_token_id": 1, "eos_token_id": 2, "projection_dim": 32}
    return _of("CLIPTextModelWithProjection", MASKED, "text_embeds", config)


def _kept(layers: int, heads: int) -> Inputs:
    return (torch.randint(3, WORDS, (1, 1)), *(torch.randn(1, heads, 7, 16) for _ in range(2 * layers)))


LANGUAGE: dict[str, tuple[Callable[[], nn.Module], Callable[[], Inputs]]] = {
    "bert": (lambda: _of("BertModel", MASKED, HIDDEN, _BERT), _words_and_mask),
    "bert_mini": (lambda: _of("BertModel", IDS, HIDDEN, _BERT_MINI), _many_words),
    "distilbert": (
        lambda: _of(
            "DistilBertForSequenceClassification", MASKED, LOGITS,
            {"vocab_size": WORDS, "dim": WIDE, "n_layers": 2, "n_heads": HEADS, "hidden_dim": 128},
        ),
        _words_and_mask,
    ),
    "albert": (lambda: _of("AlbertModel", MASKED, HIDDEN, {**_BERT, "embedding_size": 32}), _words_and_mask),
    "roberta": (lambda: _of("RobertaForTokenClassification", MASKED, LOGITS, _BERT), _words_and_mask),
    "mobilebert": (
        lambda: _of("MobileBertModel", MASKED, HIDDEN, {**_BERT, "intra_bottleneck_size": 32, "embedding_size": 32}),
        _words_and_mask,
    ),
    "deberta_v2": (
        lambda: _of(
            "DebertaV2Model", MASKED, HIDDEN,
            {**_BERT, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]},
        ),
        _words_and_mask,
    ),
    "gpt2": (lambda: _of("GPT2LMHeadModel", MASKED, LOGITS, _GPT2, use_cache=False), _words_and_mask),
    "gpt2_small_layers": (
        lambda: _of("GPT2Model", MASKED, HIDDEN, {"n_layer": 2}, use_cache=False),
        _many_words_and_mask,
    ),
    "gpt2_step": (
        lambda: _Step(transformers.GPT2LMHeadModel(transformers.GPT2Config(**_GPT2))),
        lambda: _kept(2, HEADS),
    ),
    "llama": (lambda: _of("LlamaForCausalLM", MASKED, LOGITS, _LLAMA, use_cache=False), _words_and_mask),
    "llama_step": (
        lambda: _Step(transformers.LlamaForCausalLM(transformers.LlamaConfig(**_LLAMA))),
        lambda: _kept(2, 2),
    ),
    "qwen2": (lambda: _of("Qwen2ForCausalLM", MASKED, LOGITS, _LLAMA, use_cache=False), _words_and_mask),
    "gemma": (
        lambda: _of("GemmaForCausalLM", MASKED, LOGITS, {**_LLAMA, "head_dim": 16}, use_cache=False),
        _words_and_mask,
    ),
    "gemma3": (
        lambda: _of(
            "Gemma3ForCausalLM", MASKED, LOGITS, {**_LLAMA, "head_dim": 16, "sliding_window": 4}, use_cache=False
        ),
        _words_and_mask,
    ),
    "phi3": (
        lambda: _of("Phi3ForCausalLM", MASKED, LOGITS, {**_LLAMA, "pad_token_id": 0}, use_cache=False),
        _words_and_mask,
    ),
    "qwen3_step": (
        lambda: _Step(transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**_LLAMA, head_dim=16))),
        lambda: _kept(2, 2),
    ),
    "longformer": (
        lambda: _of("LongformerModel", MASKED, HIDDEN, {**_BERT, "attention_window": 4}),
        _words_and_mask,
    ),
    "vits": (
        lambda: _of(
            "VitsModel", IDS, "waveform",
            {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "ffn_dim": 64, "flow_size": 32,
             "spectrogram_bins": 33, "upsample_initial_channel": 32, "upsample_rates": [4, 4],
             "upsample_kernel_sizes": [8, 8], "wavenet_dilation_rate": 1, "prior_encoder_num_flows": 2,
             "posterior_encoder_num_wavenet_layers": 2, "prior_encoder_num_wavenet_layers": 2},
        ),
        lambda: (torch.randint(3, 40, (1, LONG)),),
    ),
    "mamba": (
        lambda: _of(
            "MambaForCausalLM", MASKED, LOGITS,
            {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}, use_cache=False,
        ),
        _words_and_mask,
    ),
    "fnet": (lambda: _of("FNetModel", IDS, HIDDEN, _BERT), _words),
    "bart": (
        lambda: _of("BartForConditionalGeneration", ("input_ids", "decoder_input_ids"), LOGITS, _BART, use_cache=False),
        lambda: _words() + _words(),
    ),
    "phi": (lambda: _of("PhiForCausalLM", MASKED, LOGITS, _BERT, use_cache=False), _words_and_mask),
    "t5_encoder": (lambda: _of("T5EncoderModel", MASKED, HIDDEN, _T5), _words_and_mask),
    "t5": (
        lambda: _of("T5ForConditionalGeneration", ("input_ids", "decoder_input_ids"), LOGITS, _T5, use_cache=False),
        lambda: _words() + _words(),
    ),
    "whisper_encoder": (
        lambda: Called(
            transformers.WhisperModel(transformers.WhisperConfig(**_WHISPER)).encoder, ("input_features",), HIDDEN
        ),
        lambda: (torch.randn(1, 80, 100),),
    ),
    "whisper_decoder": (_whisper_decoder, lambda: (*_words(), torch.randn(1, 50, WIDE))),
    "wav2vec2": (
        lambda: _of(
            "Wav2Vec2ForCTC", ("input_values",), LOGITS,
            {**_BERT, "conv_dim": (32,) * 3, "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3), "vocab_size": 32,
             "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "num_feat_extract_layers": 3},
        ),
        lambda: (torch.randn(1, 1600),),
    ),
    "clip_text": (_text_tower, _words_and_mask),
    "clip_vision": (
        lambda: _of("CLIPVisionModelWithProjection", PIXELS, "image_embeds", {**_VIT, "projection_dim": 32}),
        _picture(64),
    ),
    "dinov2": (lambda: _of("Dinov2Model", PIXELS, HIDDEN, {**_VIT, "patch_size": 8}), _picture(64)),
    "segformer": (
        lambda: _of(
            "SegformerForSemanticSegmentation", PIXELS, LOGITS,
            {"depths": [1] * 4, "hidden_sizes": [16, 32, 48, 64], "num_labels": 5, "decoder_hidden_size": 32},
        ),
        _picture(64),
    ),
    "yolos": (
        lambda: _of("YolosForObjectDetection", PIXELS, "pred_boxes", {**_VIT, "image_size": [64, 64]}),
        _picture(64),
    ),
    "swinv2": (
        lambda: _of(
            "Swinv2Model", PIXELS, HIDDEN,
            {"image_size": 64, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        ),
        _picture(64),
    ),
}  # fmt: skip
"""Networks by name: how each is made, and its inputs."""
