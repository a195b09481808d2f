"""transformers' text models, from configurations with few and narrow layers: classifiers and language models."""

from typing import Any

import transformers as hf
from torch import Tensor, nn

from conversion.case import CLASSES, VOCABULARY, Case, tokens

hf.logging.set_verbosity_error()  # without advice on faster kernels and on fields that are not used here

SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 66,  # RoBERTa and Longformer begin at position 2
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_labels": CLASSES,
}
"""Most configurations take these names, also for fields that they call differently."""
CLASSIFIER = "SequenceClassification"


def _text(
    family: str, name: str, *, task: str = CLASSIFIER, length: int = 12, without: tuple[str, ...] = (), **settings: Any
) -> Case:
    """The model for a task, from a configuration with `settings` and all of `SMALL` but the fields in `without`."""
    small = {field: value for field, value in SMALL.items() if field not in without}

    def make() -> nn.Module:
        return getattr(hf, f"{name}For{task}")(getattr(hf, f"{name}Config")(**(small | settings)))

    shown = name if task == CLASSIFIER else f"{name}For{task}"
    return Case(shown, family, "transformers", "text", make, _inputs(name, length))


def _inputs(name: str, length: int) -> dict[str, Tensor]:
    inputs = tokens(length)
    if name in ("Bart", "T5"):
        inputs["input_ids"][:, -1] = SMALL["eos_token_id"]  # their classifiers read the state at the end of the text
    if name in ("FNet", "Mamba"):
        del inputs["attention_mask"]
    return inputs


_BART: dict[str, Any] = {
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
_RELATIVE: dict[str, Any] = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}

CASES = [
    _text("BERT", "Bert"),
    _text("BERT", "Roberta"),
    _text("DistilBERT", "DistilBert", hidden_dim=64),
    _text("ALBERT", "Albert", embedding_size=16),
    _text("ELECTRA", "Electra", embedding_size=16),
    _text("DeBERTa", "Deberta", **_RELATIVE),
    _text("DeBERTa", "DebertaV2", **_RELATIVE, conv_kernel_size=3, conv_act="gelu"),
    _text("MPNet", "MPNet"),
    _text("FNet", "FNet"),
    _text("Funnel", "Funnel", without=("num_hidden_layers",), block_sizes=[1, 1], d_head=8, d_inner=64),
    _text("Longformer", "Longformer", attention_window=4),
    _text("BigBird", "BigBird", length=40, attention_type="block_sparse", block_size=4, num_random_blocks=1),
    _text("ConvBERT", "ConvBert", embedding_size=32, head_ratio=2, conv_kernel_size=3),
    _text("SqueezeBERT", "SqueezeBert", embedding_size=32),
    _text("MobileBERT", "MobileBert", embedding_size=16, intra_bottleneck_size=16),
    _text("Nyströmformer", "Nystromformer", num_landmarks=4, segment_means_seq_len=12),
    _text("XLNet", "XLNet", without=("max_position_embeddings",), d_head=8, d_inner=64),
    _text("RoFormer", "RoFormer", embedding_size=32),
    _text("CANINE", "Canine", length=32, num_hash_buckets=64, local_transformer_stride=8, downsampling_rate=4),
    _text("ModernBERT", "ModernBert", cls_token_id=1, sep_token_id=2),
    _text("GPT-2", "GPT2"),
    _text("OPT", "OPT", ffn_dim=64, word_embed_proj_dim=32),
    _text("BLOOM", "Bloom"),
    _text("Llama", "Llama", num_key_value_heads=2),
    _text("Llama", "Qwen3", num_key_value_heads=2, head_dim=8),
    _text("Mixtral", "Mixtral", num_key_value_heads=2, num_local_experts=4),
    _text("Mamba", "Mamba", task="CausalLM", state_size=4),
    _text("T5", "T5", d_kv=8, d_ff=64, decoder_start_token_id=0),
    _text("BART", "Bart", **_BART),
    _text("BART", "Bart", task="ConditionalGeneration", **_BART),
]
