"""timm's models, most of them as they are and with small images; the largest with fewer and narrower blocks."""

from functools import partial
from typing import Any

import timm
from timm.models.convmixer import ConvMixer

from conversion.case import CLASSES, Case, image


def _image(family: str, name: str, size: int = 64, **options: Any) -> Case:
    make = partial(timm.create_model, name, pretrained=False, num_classes=CLASSES, **options)
    return Case(name, family, "timm", "image", make, image(size))


CASES = [
    _image("NFNet", "nf_resnet26"),
    _image("NFNet", "nfnet_l0"),
    _image("ResNet v2", "resnetv2_50"),
    _image("ConvNeXt", "convnextv2_atto"),
    _image("EfficientNet", "tf_efficientnetv2_b0"),
    _image("SENet", "legacy_seresnet18"),
    _image("SKNet", "skresnet18"),
    _image("Res2Net", "res2net50_14w_8s"),
    _image("ResNeSt", "resnest14d"),
    _image("HRNet", "hrnet_w18_small"),
    _image("DLA", "dla46_c", 128),
    _image("GhostNet", "ghostnet_050"),
    _image("RepVGG", "repvgg_a0"),
    _image("HardCoReNAS", "hardcorenas_a"),
    _image("Xception", "xception41"),
    _image("DPN", "dpn48b"),
    _image("CSPNet", "cspresnet50"),
    _image("VoVNet", "ese_vovnet19b_dw"),
    _image("LambdaNetworks", "lambda_resnet26t", 128),
    _image("BoTNet", "botnet26t_256", 256),
    _image("ViT", "vit_tiny_patch16_224", img_size=64),
    _image("DeiT", "deit_tiny_distilled_patch16_224", img_size=64),
    _image("BEiT", "beit_base_patch16_224", img_size=64, embed_dim=96, depth=4, num_heads=3),
    _image("EVA", "eva02_tiny_patch14_224", 56, img_size=56),
    _image("CaiT", "cait_xxs24_224", img_size=64),
    _image("XCiT", "xcit_nano_12_p16_224"),
    _image("LeViT", "levit_128s", 224),
    _image("PVT", "pvt_v2_b0"),
    _image("Twins", "twins_svt_small", img_size=64),
    _image("VOLO", "volo_d1_224", img_size=64),
    _image("Visformer", "visformer_tiny", img_size=64),
    _image("CrossViT", "crossvit_tiny_240", 240, img_size=240),
    _image("ConViT", "convit_tiny", img_size=64),
    _image("CoaT", "coat_lite_tiny", img_size=64),
    _image("PiT", "pit_ti_224", img_size=64),
    _image("TNT", "tnt_s_legacy_patch16_224", img_size=64),
    _image("NesT", "nest_tiny", img_size=64),
    _image("CoAtNet", "coatnet_pico_rw_224", img_size=64),
    _image("MobileViT", "mobilevit_xxs"),
    _image("EdgeNeXt", "edgenext_xx_small"),
    _image("PoolFormer", "poolformer_s12"),
    _image("FocalNet", "focalnet_tiny_srf"),
    _image("MLP-Mixer", "mixer_s32_224", img_size=64),
    _image("ResMLP", "resmlp_12_224", img_size=64),
    _image("gMLP", "gmlp_ti16_224", img_size=64),
    Case(
        "ConvMixer, 8 blocks", "ConvMixer", "timm", "image", partial(ConvMixer, 256, 8, num_classes=CLASSES), image(64)
    ),
    _image("Sequencer", "sequencer2d_s", 64),
]
