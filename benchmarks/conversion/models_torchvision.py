"""torchvision's models: vectors, images, pixels (segmentation), video and optical flow."""

from functools import partial
from typing import Any

import torchvision.models as tv
from torch import nn
from torchvision.models.video import MViT
from torchvision.models.video.mvit import MSBlockConfig
from torchvision.ops import MLP

from conversion.case import CLASSES, Case, image, noise


def _image(family: str, name: str, size: int = 64, exclude: tuple[str, ...] = (), **options: Any) -> Case:
    make = partial(tv.get_model, name, weights=None, num_classes=CLASSES, **options)
    return Case(name, family, "torchvision", "image", make, image(size), exclude=exclude)


def _pixels(family: str, name: str) -> Case:
    """A network with one decision per pixel. Its classes are moved to the last axis."""
    make = partial(tv.get_model, name, weights=None, weights_backbone=None, num_classes=CLASSES)
    return Case(name, family, "torchvision", "pixels", make, image(64), logits=lambda out: out["out"].movedim(1, -1))


def _video(family: str, name: str, frames: int, size: int) -> Case:
    make = partial(tv.get_model, name, weights=None, num_classes=CLASSES)
    return Case(name, family, "torchvision", "video", make, (noise(3, frames, size, size),))


def _vit() -> nn.Module:
    return tv.VisionTransformer(
        image_size=32, patch_size=8, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=CLASSES
    )


def _maxvit() -> nn.Module:
    return tv.MaxVit(
        input_size=(64, 64),
        stem_channels=16,
        partition_size=4,
        block_channels=[16, 32],
        block_layers=[1, 2],
        head_dim=8,
        stochastic_depth_prob=0.1,
        num_classes=CLASSES,
    )


def _mvit() -> nn.Module:
    kernel, one, two = [3, 3, 3], [1, 1, 1], [1, 2, 2]
    blocks = [
        MSBlockConfig(1, 32, 32, kernel, kernel, one, two),
        MSBlockConfig(2, 32, 64, kernel, kernel, two, one),
        MSBlockConfig(2, 64, 64, kernel, kernel, one, one),
    ]
    return MViT(
        spatial_size=(32, 32), temporal_size=4, block_setting=blocks, residual_pool=True, residual_with_cls_embed=False,
        rel_pos_embed=True, proj_after_attn=True, num_classes=CLASSES,
    )  # fmt: skip


CASES = [
    Case("MLP, 3 layers", "MLP", "torchvision", "vector", partial(MLP, 20, [64, 64, CLASSES]), (noise(20),)),
    _image("AlexNet", "alexnet"),
    _image("VGG", "vgg11", 32),
    _image("SqueezeNet", "squeezenet1_1"),
    _image("Inception", "googlenet", aux_logits=True, init_weights=False, exclude=("aux*",)),
    _image("Inception", "inception_v3", 192, aux_logits=False, init_weights=False),
    _image("ResNet", "resnet18"),
    _image("ResNet", "resnext50_32x4d"),
    _image("DenseNet", "densenet121"),
    _image("MobileNet", "mobilenet_v2"),
    _image("MobileNet", "mobilenet_v3_small"),
    _image("ShuffleNet", "shufflenet_v2_x0_5"),
    _image("MNASNet", "mnasnet0_5"),
    _image("EfficientNet", "efficientnet_b0"),
    _image("RegNet", "regnet_y_400mf"),
    _image("ConvNeXt", "convnext_tiny"),
    _image("Swin", "swin_t"),
    _image("Swin", "swin_v2_t"),
    Case("VisionTransformer, 3 blocks", "ViT", "torchvision", "image", _vit, image(32)),
    Case("MaxVit, 3 blocks", "MaxViT", "torchvision", "image", _maxvit, image(64)),
    _pixels("FCN", "fcn_resnet50"),
    _pixels("LR-ASPP", "lraspp_mobilenet_v3_large"),
    _video("ResNet 3D", "r3d_18", 4, 32),
    _video("Swin 3D", "swin3d_t", 4, 32),
    Case("MViT, 3 blocks", "MViT", "torchvision", "video", _mvit, (noise(3, 4, 32, 32),)),
    Case("raft_small", "RAFT", "torchvision", "video", tv.optical_flow.raft_small, (noise(3, 128, 128),) * 2),
]
