"""Schemes as modules: equal to their equations, ordinary modules of PyTorch, one graph for the compiler."""

from __future__ import annotations

import copy
import io
import math

import pytest
import siamesenorm as sn
import torch
from siamesenorm import testing
from torch import nn

SCHEMES = [
    *sn.schemes(), "attn_res(block=1)", "siamese(x=hybrid)", "siamese(form=write)", "hybrid(first=pre)",
    "mhc(res=identity)", "mhc(res=permutations)", "lambda(x0=false)", "denseformer(dilation=2, period=2)",
    "orthogonal(over=sample)", "mv_split(norm=pre)",
]  # fmt: skip


def pre(x, sublayers, p):
    for i, sublayer in enumerate(sublayers):
        x = x + sublayer(testing.rms_norm(x, p[f"{testing.junction_name(i)}.norm.weight"]))
    return testing.rms_norm(x, p["close.norm.weight"])


def post(x, sublayers, p):
    for i, sublayer in enumerate(sublayers):
        x = testing.rms_norm(x + sublayer(x), p[f"{testing.junction_name(i)}.norm.weight"])
    return testing.rms_norm(x, p["close.norm.weight"])


def siamese(x, sublayers, p, norm=testing.rms_norm):
    a = b = x
    for i, sublayer in enumerate(sublayers):
        at = testing.junction_name(i)
        a = norm(a, p[f"{at}.x_norm.weight"])
        o = sublayer(norm(a + norm(b, p[f"{at}.y_norm.weight"]), p[f"{at}.input_norm.weight"]))
        a, b = a + o / math.sqrt(2 * (i // 2 + 1)), b + o
    return norm(norm(a, p["close.x_norm.weight"]) + norm(b, p["close.y_norm.weight"]), p["close.norm.weight"])


def denseformer(x, sublayers, p):
    outputs = [x]
    for block in range(len(sublayers) // 2):
        for i in (2 * block, 2 * block + 1):
            x = x + sublayers[i](testing.rms_norm(x, p[f"{testing.junction_name(i)}.norm.weight"]))
        outputs.append(x)
        mix = p[f"{testing.junction_name(2 * block + 1)}.mix"]
        x = sum(alpha * y for alpha, y in zip(mix, outputs, strict=True))
    return testing.rms_norm(x, p["close.norm.weight"])


def attn_res(x, sublayers, p, block=0):
    def read(sources, at):
        keys = [testing.rms_norm(v, p[f"{at}.key_norm.weight"]) for v in sources]
        weights = torch.stack([k @ p[f"{at}.query"] for k in keys], -1).softmax(-1)
        return sum(weights[..., j, None] * v for j, v in enumerate(sources))

    sources, pending = [x], None
    for i, sublayer in enumerate(sublayers):
        at = testing.junction_name(i)
        starts = not block or (i % (2 * block) == 0)
        if i and starts:
            sources, pending = [*sources, pending], None
        h = read(sources + ([] if pending is None else [pending]), at) if i else x
        o = sublayer(testing.rms_norm(h, p[f"{at}.norm.weight"]))
        pending = o if pending is None else pending + o
    return testing.rms_norm(read([*sources, pending], "close"), p["close.norm.weight"])


def attn_res_of_two(x, sublayers, p):
    return attn_res(x, sublayers, p, block=2)


EQUATIONS = [
    ("pre", pre), ("post", post), ("siamese", siamese), ("denseformer", denseformer), ("attn_res", attn_res),
    ("attn_res(block=2)", attn_res_of_two)
]


@pytest.mark.parametrize("scheme, equation", EQUATIONS)
@pytest.mark.parametrize("checkpoint_every", [0, 1, 2])
def test_equation(scheme, equation, checkpoint_every):
    testing.check_scheme(scheme, equation, checkpoint_every=checkpoint_every)


def test_layer_norm_equation():
    testing.check_scheme("siamese", lambda x, s, p: siamese(x, s, p, norm=testing.layer_norm), norm="layer")


def dyt(x, name, p):
    return p[f"{name}.weight"] * torch.tanh(p[f"{name}.alpha"] * x)


def derf(x, name, p):
    return p[f"{name}.weight"] * torch.erf(p[f"{name}.alpha"] * x + p[f"{name}.shift"]) + p[f"{name}.bias"]


@pytest.mark.parametrize(("norm", "bias", "function"), [("dyt", False, dyt), ("derf", True, derf)])
def test_element_wise_norms(norm, bias, function):
    def sandwich(x, sublayers, p):
        for i, sublayer in enumerate(sublayers):
            at = testing.junction_name(i)
            x = x + function(sublayer(function(x, f"{at}.input_norm", p)), f"{at}.output_norm", p)
        return function(x, "close.norm", p)

    testing.check_scheme("sandwich", sandwich, norm=norm, bias=bias)


@pytest.mark.parametrize("norm", ["dyt", "derf"])
def test_element_wise_norms_start_where_they_are_told(norm):
    for given, wanted in ((0.8, 0.8), (None, 0.5)):
        stack = sn.ResidualStack("siamese", width=8, blocks=2, norm=norm, norm_alpha=given)
        alphas = [value for name, value in stack.named_parameters() if name.endswith("alpha")]
        assert len(alphas) == 3 * 4 + 3
        assert all(alpha.item() == pytest.approx(wanted) for alpha in alphas)
        with torch.no_grad():
            for alpha in alphas:
                alpha.zero_()
        stack.reset_parameters()
        assert all(alpha.item() == pytest.approx(wanted) for alpha in alphas)


def test_a_wrong_equation_is_found():
    with pytest.raises(AssertionError, match="output"):
        testing.check_scheme("siamese", pre_of_siamese)


def pre_of_siamese(x, sublayers, p):
    for i, sublayer in enumerate(sublayers):
        x = x + sublayer(testing.rms_norm(x, p[f"{testing.junction_name(i)}.y_norm.weight"]))
    return testing.rms_norm(x, p["close.norm.weight"])


@pytest.mark.parametrize("scheme", ["mv_split", "orthogonal(over=sample)"])
def test_a_causal_stack_refuses_a_scheme_across_tokens(scheme):
    sn.ResidualStack(scheme, width=8, blocks=1)
    with pytest.raises(sn.UsageError, match="all tokens of a sample"):
        sn.ResidualStack(scheme, width=8, blocks=1, causal=True)
    sn.ResidualStack("orthogonal", width=8, blocks=1, causal=True)


def sublayers_of(width: int, count: int, dtype=torch.float32) -> nn.ModuleList:
    torch.manual_seed(1)
    return nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(count)).to(dtype)


def loop(stack, x, sublayers):
    """The four verbs by hand."""
    streams = stack.open(x)
    for i, sublayer in enumerate(sublayers):
        streams, h = stack[i].read(streams)
        streams = stack[i].write(streams, sublayer(h))
    return stack.close(streams)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_verbs_and_loop_are_one(scheme):
    stack = sn.ResidualStack(scheme, width=8, blocks=2)
    sublayers = sublayers_of(8, 4)
    x = torch.randn(2, 3, 8)
    assert torch.equal(stack(x, sublayers), loop(stack, x, sublayers))
    assert sn.canonical_scheme(scheme) == stack.scheme


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bfloat16(scheme):
    x = torch.randn(2, 3, 8)
    wide = sn.ResidualStack(scheme, width=8, blocks=2)
    narrow = sn.ResidualStack(scheme, width=8, blocks=2, dtype=torch.bfloat16)
    y = narrow(x.bfloat16(), sublayers_of(8, 4, torch.bfloat16))
    assert y.dtype == torch.bfloat16
    assert torch.allclose(y.float(), wide(x, sublayers_of(8, 4)), atol=0.15, rtol=0.1)
    y.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in narrow.parameters())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_autocast_rounds_the_branches_alone(scheme):
    stack = sn.ResidualStack(scheme, width=8, blocks=2)
    sublayers, x = sublayers_of(8, 4), torch.randn(2, 3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = stack(x, sublayers)
    assert y.dtype == torch.float32
    assert torch.allclose(y, stack(x, sublayers), atol=0.1, rtol=0.1)
    y.sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in stack.parameters())


def gradients(run, stack, x):
    stack.zero_grad()
    leaf = x.clone().requires_grad_()
    y = run(leaf)
    (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum().backward()
    return [y.detach(), leaf.grad, *(p.grad for p in stack.parameters())]


def assert_close(ours, theirs, tolerance=1e-5):
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert torch.allclose(a, b, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_compiles_to_one_graph(scheme):
    torch.compiler.reset()
    stack = sn.ResidualStack(scheme, width=8, blocks=2)
    sublayers = sublayers_of(8, 4)
    compiled = torch.compile(lambda x: stack(x, sublayers), fullgraph=True, backend="aot_eager")
    x = torch.randn(2, 3, 8)
    assert_close(gradients(compiled, stack, x), gradients(lambda x: stack(x, sublayers), stack, x))


@pytest.mark.parametrize("scheme", ["pre", "siamese"])
def test_compiles_with_dynamic_shapes_and_inductor(scheme):
    torch.compiler.reset()
    stack = sn.ResidualStack(scheme, width=8, blocks=1)
    sublayers = sublayers_of(8, 2)
    graphs = []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(lambda x: stack(x, sublayers), fullgraph=True, dynamic=True)
    counted = torch.compile(lambda x: stack(x, sublayers), fullgraph=True, dynamic=True, backend=counting)
    for tokens in (3, 5, 9):
        x = torch.randn(2, tokens, 8)
        plain = gradients(lambda x: stack(x, sublayers), stack, x)
        assert_close(gradients(compiled, stack, x), plain)
        assert_close(gradients(counted, stack, x), plain)
    assert len(graphs) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("every", [1, 2, 5])
def test_checkpointing_changes_no_bit(scheme, every):
    stack = sn.ResidualStack(scheme, width=8, blocks=3)
    sublayers = sublayers_of(8, 6)
    x = torch.randn(2, 3, 8)
    kept = gradients(lambda x: stack(x, sublayers), stack, x)
    again = gradients(lambda x: stack(x, sublayers, every), stack, x)
    for a, b in zip(kept, again, strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


def test_gate_multiplies_the_branch():
    stack = sn.ResidualStack("siamese", width=8, blocks=1)
    x, gate = torch.randn(2, 3, 8), torch.randn(2, 1, 8)
    sublayers = sublayers_of(8, 2)
    gated = stack(x, [lambda h, s=s: (s(h), gate) for s in sublayers])
    assert torch.allclose(gated, stack(x, [lambda h, s=s: s(h) * gate for s in sublayers]), atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_is_an_ordinary_module(scheme):
    stack = sn.ResidualStack(scheme, width=8, blocks=2)
    sublayers = sublayers_of(8, 4)
    x = torch.randn(2, 3, 8)
    y = stack(x, sublayers)
    twin = copy.deepcopy(stack)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(1)
    assert torch.equal(twin(x, sublayers), y), "a copy has parameters of its own"
    stack.load_state_dict(twin.state_dict())
    assert torch.equal(stack(x, sublayers), y)
    file = io.BytesIO()
    torch.save(stack, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x, sublayers), y)
    double = copy.deepcopy(stack).to(torch.float64)
    assert torch.allclose(double(x.double(), copy.deepcopy(sublayers).double()).float(), y, atol=1e-4)


def test_names_kinds_and_values_are_the_engines(fixtures):
    model = sn.load(fixtures / "lm")
    config = model.config["model"]
    stack = sn.ResidualStack(
        config["residual"], width=config["width"], blocks=config["blocks"], norm=config["norm"],
        eps=config["norm_eps"], bias=config["bias"],
    )  # fmt: skip
    ours = sn.parameter_kinds(stack)
    theirs = sn.parameter_kinds(model)
    assert ours == {name: theirs[name] for name in ours}
    stack.load_state_dict({name: model.state_dict()[name] for name in ours})


def test_made_on_meta_and_given_memory():
    with torch.device("meta"):
        stack = sn.ResidualStack("hc", width=8, blocks=2, seed=3)
    assert all(p.is_meta for p in stack.parameters())
    stack.to_empty(device="cpu")
    stack.reset_parameters()
    fresh = sn.ResidualStack("hc", width=8, blocks=2, seed=3).state_dict()
    assert all(torch.equal(value, fresh[name]) for name, value in stack.state_dict().items())


class Halved(sn.Scheme):
    """y <- y + sublayer(norm(y)) / 2, one gain for all sites."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__(width, blocks)
        self.gain = nn.Parameter(torch.ones(width))

    def read(self, site, streams):
        return streams, testing.rms_norm(streams[0], self.gain)

    def write(self, site, streams, branch, gate=None):
        return (streams[0] + (branch if gate is None else branch * gate) / 2,)

    def close(self, streams):
        return streams[0]


def test_scheme_in_python_runs_in_the_stack():
    def halved(x, sublayers, p):
        for sublayer in sublayers:
            x = x + sublayer(testing.rms_norm(x, p["scheme.gain"])) / 2
        return x

    testing.check_scheme(Halved, halved)
    testing.check_scheme(Halved, halved, checkpoint_every=1)
    stack = sn.ResidualStack(Halved, width=8, blocks=2)
    twin = copy.deepcopy(stack)
    with torch.no_grad():
        stack.scheme.gain.zero_()
    sublayers, x = sublayers_of(8, 4), torch.randn(2, 3, 8)
    assert not torch.equal(twin(x, sublayers), stack(x, sublayers))
    torch.compiler.reset()
    compiled = torch.compile(lambda x: twin(x, sublayers), fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x), twin(x, sublayers), atol=1e-6)
