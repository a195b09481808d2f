"""The models of the conversion matrix, what is checked of each, and how it is written down."""

from conversion.operators import declare_operators

declare_operators()  # before any module here imports torchvision, or timm and transformers, which import it
