"""transformers' audio models, and those of its image and video models that the other libraries lack."""

from functools import partial
from typing import Any

import transformers as hf
from torch import nn

from conversion.case import CLASSES, Case, Inputs, Kind, noise

_ENCODER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_IMAGE = _ENCODER | {"image_size": 32, "patch_size": 8, "num_labels": CLASSES}
_IN_TWO = {"vision_config": _IMAGE, "num_labels": CLASSES}  # a configuration for images and one for texts
_FRAMES = _IMAGE | {"num_frames": 4}
_BOXES = _IMAGE | {"image_size": (32, 32), "num_detection_tokens": 5}
_SPECTRUM = _ENCODER | {"patch_size": 8, "max_length": 32, "num_mel_bins": 16, "num_labels": CLASSES}
_SPEECH = _ENCODER | {
    "conv_dim": (16, 16, 32),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "classifier_proj_size": 16,
    "layerdrop": 0.0,  # it leaves out whole layers of a step: their factors would rightly get no gradient then
    "apply_spec_augment": False,  # it draws from NumPy's global generator
    "num_labels": CLASSES,
}
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
_PIXELS = {"pixel_values": noise(3, 32, 32)}
_VIDEO = {"pixel_values": noise(4, 3, 32, 32)}


def _make(name: str, task: str, settings: dict[str, Any]) -> nn.Module:
    return getattr(hf, f"{name}For{task}")(getattr(hf, f"{name}Config")(**settings))


def _case(kind: Kind, family: str, name: str, task: str, settings: dict[str, Any], inputs: Inputs) -> Case:
    return Case(name, family, "transformers", kind, partial(_make, name, task, settings), inputs)


def _speech(family: str, name: str, **settings: Any) -> Case:
    return _case("audio", family, name, "SequenceClassification", _SPEECH | settings, {"input_values": noise(1600)})


CASES = [
    _speech("Wav2Vec2", "Wav2Vec2"),
    _speech("HuBERT", "Hubert"),
    _speech("WavLM", "WavLM"),
    _speech("Data2Vec audio", "Data2VecAudio", conv_pos_kernel_size=3),
    _speech("SEW", "SEW", squeeze_factor=2),
    _speech("Wav2Vec2-Conformer", "Wav2Vec2Conformer", conv_depthwise_kernel_size=5),
    _case("audio", "AST", "AST", "AudioClassification", _SPECTRUM, {"input_values": noise(32, 16)}),
    _case("audio", "Whisper", "Whisper", "AudioClassification", _WHISPER, {"input_features": noise(16, 50)}),
    _case("image", "CLIP", "CLIP", "ImageClassification", _IN_TWO, _PIXELS),
    _case("image", "SigLIP", "Siglip", "ImageClassification", _IN_TWO, _PIXELS),
    _case("image", "DINOv2", "Dinov2", "ImageClassification", _IMAGE, _PIXELS),
    _case("image", "YOLOS", "Yolos", "ObjectDetection", _BOXES, _PIXELS),
    _case("video", "TimeSformer", "Timesformer", "VideoClassification", _FRAMES, _VIDEO),
    _case("video", "VideoMAE", "VideoMAE", "VideoClassification", _FRAMES, _VIDEO),
]
