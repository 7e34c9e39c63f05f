"""Encoders of what the game shows: images by convolutions, vectors by two linear layers."""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from lanista.agents.config import AgentConfig, Spaces
from lanista.envs.errors import InputError


class ImageEncoder(nn.Module):
    """Convolutions with ReLU, then a projection (Table 5, "Image Encoder")."""

    def __init__(self, shape: tuple[int, ...], config: AgentConfig, width: int) -> None:
        """Make the layers.

        Args:
            shape: ``(height, width, channels)`` of an image.
            config: Gives channels, kernels and strides.
            width: Size of the output.

        Raises:
            InputError: If the images are too small for the convolutions.
        """
        super().__init__()
        sides = list(shape[:2])
        for kernel, stride in zip(config.image_kernels, config.image_strides, strict=True):
            sides = [(side - kernel) // stride + 1 for side in sides]
        if min(sides) < 1:
            raise InputError(
                f"Images of {shape[0]}x{shape[1]} pixels are too small for agent.image_kernels "
                f"{config.image_kernels} and image_strides {config.image_strides}; take smaller."
            )
        layers: list[nn.Module] = []
        for (before, after), kernel, stride in zip(
            pairwise((shape[2], *config.image_channels)),
            config.image_kernels,
            config.image_strides,
            strict=True,
        ):
            layers += [nn.Conv2d(before, after, kernel, stride), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers)
        self.projection = nn.Linear(math.prod(sides) * config.image_channels[-1], width)

    def forward(self, images: Tensor) -> Tensor:
        """Encode ``uint8[..., height, width, channels]`` to ``[..., width]``."""
        flat = images.flatten(0, -4).permute(0, 3, 1, 2)
        scaled = flat.to(self.projection.weight.dtype) / 255
        encoded: Tensor = self.projection(self.convolutions(scaled).flatten(1))
        return encoded.reshape(*images.shape[:-3], -1)


class VectorEncoder(nn.Module):
    """Two linear layers with a ReLU between them (Table 5, "State Encoder")."""

    def __init__(self, dimensions: int, config: AgentConfig, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dimensions, config.vector_hidden),
            nn.ReLU(),
            nn.Linear(config.vector_hidden, width),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        """Encode ``float32[..., dimensions]`` to ``[..., width]``."""
        encoded: Tensor = self.layers(vectors)
        return encoded


def make_observation_encoder(config: AgentConfig, spaces: Spaces, width: int) -> nn.Module:
    """Make the encoder for the game's kind of observation, with output size ``width``.

    Raises:
        InputError: If it is neither a ``uint8`` image nor a ``float32`` vector.
    """
    shape, dtype = spaces.observation_shape, spaces.observation_dtype
    if len(shape) == 3 and dtype == "uint8":
        return ImageEncoder(shape, config, width)
    if len(shape) == 1 and dtype == str(torch.float32).removeprefix("torch."):
        return VectorEncoder(shape[0], config, width)
    raise InputError(
        f"Observations {dtype}{list(shape)} cannot be encoded; agents read uint8 images "
        "[height, width, channels] or float32 vectors."
    )
