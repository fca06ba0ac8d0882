"""The ops as a user of the wheel has them; tests/opcheck goes through all of them."""

from __future__ import annotations

import pytest
import siamesenorm  # noqa: F401  (registers torch.ops.siamese)
import torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_of_norms(dtype):
    x = torch.randn(3, 5, 33, dtype=dtype, requires_grad=True)
    gain = torch.randn(33, dtype=dtype, requires_grad=True)
    torch.library.opcheck(torch.ops.siamese.rms_norm.default, (x, gain, 1e-5))
    torch.library.opcheck(torch.ops.siamese.layer_norm.default, (x, gain, None, 1e-5))


def test_an_op_is_its_meaning():
    x = torch.randn(3, 33, dtype=torch.float64, requires_grad=True)
    gain = torch.randn(33, dtype=torch.float64, requires_grad=True)
    wanted = x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-5) * gain
    assert torch.allclose(torch.ops.siamese.rms_norm(x, gain, 1e-5), wanted)
    assert torch.autograd.gradcheck(lambda x, gain: torch.ops.siamese.rms_norm(x, gain, 1e-5), (x, gain))


def test_a_mistake_is_one_line():
    with pytest.raises(RuntimeError, match=r"siamese::rms_norm: gain: expected shape \[8\], got \[7\]"):
        torch.ops.siamese.rms_norm(torch.zeros(2, 8), torch.zeros(7), 1e-5)
