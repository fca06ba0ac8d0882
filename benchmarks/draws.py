"""What the engine draws for a sample of a diffusion model (siamese/base/random.h, models/dit.cc), number for number:
Philox 4x32-10, so that a held-out loss with its random steps and noise can be computed outside."""

import math

import torch

WORD, LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def words(seed: int, stream: int, index: int) -> list[int]:
    counter = [index & WORD, index >> 32, stream & WORD, stream >> 32]
    key = [seed & WORD, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(second >> 32) ^ counter[1] ^ key[0], second & WORD, (first >> 32) ^ counter[3] ^ key[1], first & WORD]
        key = [(key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD]
    return counter


def uniform(low: int, high: int) -> float:
    return ((((high << 32) | low) >> 11) + 0.5) / 2**53


def normal(seed: int, stream: int, index: int) -> float:
    drawn = words(seed, stream, index)
    return math.sqrt(-2 * math.log(uniform(*drawn[:2]))) * math.cos(2 * math.pi * uniform(*drawn[2:]))


def below(bound: int, seed: int, stream: int) -> int:
    drawn = words(seed, stream, 0)
    return (((drawn[1] << 32) | drawn[0]) * bound) >> 64


def name_of(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & LONG
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & LONG
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & LONG
    return value ^ (value >> 31)


def timesteps_and_noise(shape: torch.Size, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the first held-out samples, [batch, channels, size, size]; the seed of an evaluation is 0."""
    of_step, of_noise = name_of("dit.timestep"), name_of("dit.noise")
    each = math.prod(shape[1:])
    noise = [normal(of_noise, sample, i) for sample in range(shape[0]) for i in range(each)]
    timesteps = torch.tensor([below(steps, of_step, sample) for sample in range(shape[0])])
    return timesteps, torch.tensor(noise, dtype=torch.float64).float().reshape(shape)
