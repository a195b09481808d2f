"""transformers' text models, from configurations with few and narrow layers: classifiers and language models."""

from typing import Any

import transformers as hf
from torch import Tensor, nn

from conversion.case import CLASSES, VOCABULARY, Case, Inputs, tokens

hf.logging.set_verbosity_error()  # advice on faster kernels, and defaults of fields that are not used here

SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_labels": CLASSES,
}


def _without(*names: str, **changed: Any) -> dict[str, Any]:
    return {name: value for name, value in SMALL.items() if name not in names} | changed


def _text(
    family: str, name: str, settings: dict[str, Any] = SMALL, length: int = 12, task: str = "SequenceClassification"
) -> Case:
    """The model `name`For`task` from `name`Config with these settings."""

    def make() -> nn.Module:
        return getattr(hf, f"{name}For{task}")(getattr(hf, f"{name}Config")(**settings))

    shown = name if task == "SequenceClassification" else f"{name}For{task}"
    return Case(shown, family, "transformers", "text", make, _inputs(name, length))


def _inputs(name: str, length: int) -> Inputs:
    inputs: dict[str, Tensor] = tokens(length)
    if name in ("Bart", "T5"):
        inputs["input_ids"][:, -1] = SMALL["eos_token_id"]  # their classifiers read the state at the end of the text
    if name in ("FNet", "Mamba"):
        del inputs["attention_mask"]
    return inputs


_GPT2 = _without("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings", n_embd=32, n_layer=2, n_head=4, n_positions=64)  # fmt: skip
_T5 = _without("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", d_model=32, num_layers=2, num_heads=4, d_kv=8, d_ff=64, decoder_start_token_id=0)  # fmt: skip
_BART = _without("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, decoder_start_token_id=2)  # fmt: skip

CASES = [
    _text("BERT", "Bert"),
    _text("BERT", "Roberta", _without(max_position_embeddings=66)),
    _text("DistilBERT", "DistilBert", _without("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", dim=32, n_layers=2, n_heads=4, hidden_dim=64)),  # fmt: skip
    _text("ALBERT", "Albert", _without(embedding_size=16)),
    _text("ELECTRA", "Electra", _without(embedding_size=16)),
    _text("DeBERTa", "Deberta", _without(relative_attention=True, pos_att_type=["c2p", "p2c"])),
    _text("DeBERTa", "DebertaV2", _without(relative_attention=True, pos_att_type=["c2p", "p2c"], conv_kernel_size=3, conv_act="gelu")),  # fmt: skip
    _text("MPNet", "MPNet"),
    _text("FNet", "FNet"),
    _text("Funnel", "Funnel", _without("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1])),  # fmt: skip
    _text("Longformer", "Longformer", _without(attention_window=4, max_position_embeddings=66)),
    _text("BigBird", "BigBird", _without(attention_type="block_sparse", block_size=4, num_random_blocks=1), length=40),
    _text("ConvBERT", "ConvBert", _without(embedding_size=32, head_ratio=2, conv_kernel_size=3)),
    _text("SqueezeBERT", "SqueezeBert", _without(embedding_size=32)),
    _text("MobileBERT", "MobileBert", _without(embedding_size=16, intra_bottleneck_size=16)),
    _text("Nyströmformer", "Nystromformer", _without(num_landmarks=4, segment_means_seq_len=12)),
    _text("XLNet", "XLNet", _without("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings", d_model=32, n_layer=2, n_head=4, d_inner=64)),  # fmt: skip
    _text("RoFormer", "RoFormer", _without(embedding_size=32)),
    _text("CANINE", "Canine", _without("vocab_size", num_hash_buckets=64, local_transformer_stride=8, downsampling_rate=4), length=32),  # fmt: skip
    _text("ModernBERT", "ModernBert", _without(cls_token_id=1, sep_token_id=2)),
    _text("GPT-2", "GPT2", _GPT2),
    _text("OPT", "OPT", _without("intermediate_size", ffn_dim=64, word_embed_proj_dim=32)),
    _text("BLOOM", "Bloom", _without("num_hidden_layers", "num_attention_heads", n_layer=2, n_head=4)),
    _text("Llama", "Llama", _without(num_key_value_heads=2)),
    _text("Llama", "Qwen3", _without(num_key_value_heads=2, head_dim=8)),
    _text("Mixtral", "Mixtral", _without(num_key_value_heads=2, num_local_experts=4)),
    _text("Mamba", "Mamba", _without("num_attention_heads", "intermediate_size", state_size=4), task="CausalLM"),
    _text("T5", "T5", _T5),
    _text("BART", "Bart", _BART),
    _text("BART", "Bart", _BART, task="ConditionalGeneration"),
]
