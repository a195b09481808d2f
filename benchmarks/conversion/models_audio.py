"""transformers' audio models from small configurations, and its image, video and detection models."""

from functools import partial
from typing import Any

import transformers as hf
from torch import nn

from conversion.case import CLASSES, Case, Inputs, noise

_ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_IMAGE = _ENCODER | {"image_size": 32, "patch_size": 8, "num_labels": CLASSES}
# LayerDrop leaves out whole layers of a training step at random: their factors would rightly get no gradient then.
_SPEECH = _ENCODER | {
    "conv_dim": (16, 16, 32),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "classifier_proj_size": 16,
    "layerdrop": 0.0,
    "apply_spec_augment": False,
    "num_labels": CLASSES,
}


def _make(name: str, task: str, settings: dict[str, Any]) -> nn.Module:
    return getattr(hf, f"{name}For{task}")(getattr(hf, f"{name}Config")(**settings))


def _speech(family: str, name: str, **settings: Any) -> Case:
    make = partial(_make, name, "SequenceClassification", _SPEECH | settings)
    return Case(name, family, "transformers", "audio", make, {"input_values": noise(1600)})


def _other(family: str, name: str, task: str, settings: dict[str, Any], inputs: Inputs) -> Case:
    kind = "audio" if "Audio" in task else "video" if "Video" in task else "image"
    return Case(name, family, "transformers", kind, partial(_make, name, task, settings), inputs)


_WHISPER = {
    "d_model": 32,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "num_mel_bins": 16,
    "max_source_positions": 25,
    "classifier_proj_size": 16,
    "num_labels": CLASSES,
}
_AST = {name: value for name, value in _IMAGE.items() if name != "image_size"} | {"max_length": 32, "num_mel_bins": 16}
_FRAMES = _IMAGE | {"num_frames": 4}

CASES = [
    _speech("Wav2Vec2", "Wav2Vec2"),
    _speech("HuBERT", "Hubert"),
    _speech("WavLM", "WavLM"),
    _speech("Data2Vec audio", "Data2VecAudio", conv_pos_kernel_size=3),
    _speech("SEW", "SEW", squeeze_factor=2),
    _speech("Wav2Vec2-Conformer", "Wav2Vec2Conformer", conv_depthwise_kernel_size=5),
    _other("AST", "AST", "AudioClassification", _AST, {"input_values": noise(32, 16)}),
    _other("Whisper", "Whisper", "AudioClassification", _WHISPER, {"input_features": noise(16, 50)}),
    _other("CLIP", "CLIP", "ImageClassification", {"vision_config": _IMAGE, "num_labels": CLASSES}, {"pixel_values": noise(3, 32, 32)}),  # fmt: skip
    _other("SigLIP", "Siglip", "ImageClassification", {"vision_config": _IMAGE, "num_labels": CLASSES}, {"pixel_values": noise(3, 32, 32)}),  # fmt: skip
    _other("DINOv2", "Dinov2", "ImageClassification", _IMAGE, {"pixel_values": noise(3, 32, 32)}),
    _other("TimeSformer", "Timesformer", "VideoClassification", _FRAMES, {"pixel_values": noise(4, 3, 32, 32)}),
    _other("VideoMAE", "VideoMAE", "VideoClassification", _FRAMES, {"pixel_values": noise(4, 3, 32, 32)}),
    _other("YOLOS", "Yolos", "ObjectDetection", _IMAGE | {"image_size": (32, 32), "num_detection_tokens": 5}, {"pixel_values": noise(3, 32, 32)}),  # fmt: skip
]
