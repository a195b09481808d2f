"""Layers and models that were not written for counterpoint, as strangers write them."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class StandardisedConv2d(nn.Conv2d):
    """Its weight is standardised before each use."""

    def forward(self, input: Tensor) -> Tensor:
        mean, std = self.weight.mean((1, 2, 3), keepdim=True), self.weight.std((1, 2, 3), keepdim=True)
        return functional.conv2d(input, (self.weight - mean) / std, self.bias, self.stride, self.padding)


class PaddedConv2d(nn.Conv2d):
    """It pads by itself."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.conv2d(functional.pad(input, (0, 2, 0, 2)), self.weight, self.bias)


class CosineLinear(nn.Linear):
    """Not linear: its input is normalised."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(functional.normalize(input, dim=-1), self.weight)


class ScaledBiasLinear(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, None if self.bias is None else 2 * self.bias)


class CentredLinear(nn.Linear):
    """It mixes the rows of a batch."""

    def forward(self, input: Tensor) -> Tensor:
        output = super().forward(input)
        return output - output.mean(dim=0)


class NeedsBias(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return torch.addmm(self.bias, input, self.weight.t())


class Attention(nn.MultiheadAttention):
    """A subclass; what it does with its weights is its own affair."""


class SequenceFirst(nn.Module):
    """Images (B, 3, H, W) to logits. Its transformer, as torch's do by default, takes (L, B, E)."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 2, 2)
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)
        self.head = nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).permute(2, 0, 1)
        logits: Tensor = self.head(self.transformer(patches, patches).mean(0))
        return logits


class Text(nn.Module):
    """Tokens (B, L) or, with batch_first=False, (L, B) to logits, through torch's own transformer layers."""

    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=batch_first)
        self.head = nn.Linear(8, 3)
        self.sequence_axis = 1 if batch_first else 0

    def forward(self, tokens: Tensor, padding: Tensor | None = None) -> Tensor:
        hidden = self.encoder(self.embedding(tokens), src_key_padding_mask=padding)
        logits: Tensor = self.head(hidden.mean(self.sequence_axis))
        return logits
