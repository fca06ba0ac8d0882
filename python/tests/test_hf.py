"""`siamese convert --to hf` and transformers: the modelling file is the engine's model, without our package."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hf_cases import CASES, CODE, SMALL, build, modelling, randomise, relative_error, siamese
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

TOKENS = torch.randint(37, (3, 11), generator=torch.Generator().manual_seed(5))


def saved(case: str, folder: Path) -> Path:
    """As `save_pretrained` writes it: config.json and weights, nothing of ours beside them."""
    build(case).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_the_engine_computes_the_same(case: str, tmp_path: Path) -> None:
    """Logits, loss and every gradient against `siamese probe` in double; and back, bit for bit."""
    theirs = saved(case, tmp_path / "theirs")
    save_file({"tokens": TOKENS}, tmp_path / "in.safetensors")
    siamese("convert", theirs, "--from", "hf", "--to", "siamese", "-o", tmp_path / "ours")
    siamese("probe", tmp_path / "ours", "--inputs", tmp_path / "in.safetensors", "--grad", "--double", "--out",
            tmp_path / "found.safetensors")  # fmt: skip
    found = load_file(tmp_path / "found.safetensors")
    model = build(case).double()
    output = model(TOKENS, labels=TOKENS)
    loss = F.cross_entropy(output.logits[:, :-1].flatten(0, 1), TOKENS[:, 1:].flatten())
    loss.backward()
    assert relative_error(output.logits.detach(), found["output"]) < 1e-10
    assert relative_error(loss.detach(), found["loss"]) < 1e-10
    assert relative_error(output.loss.detach(), found["loss"]) < 1e-6  # transformers rounds logits to float32
    gradients = dict(model.named_parameters())
    assert {f"grad/{name}" for name in gradients} == {name for name in found if name.startswith("grad/")}
    for name, value in gradients.items():
        assert relative_error(value.grad, found[f"grad/{name}"]) < 1e-10, name
    siamese("convert", tmp_path / "ours", "--from", "siamese", "--to", "hf", "-o", tmp_path / "back")
    before, after = load_file(theirs / "model.safetensors"), load_file(tmp_path / "back" / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_file_needs_torch_and_transformers_only() -> None:
    for name in ("configuration_siamese.py", "modeling_siamese.py"):
        imports = set()
        for node in ast.walk(ast.parse((CODE / name).read_text())):
            if isinstance(node, ast.Import):
                imports |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imports.add("." if node.level else str(node.module).split(".")[0])
        assert imports <= {"difflib", "math", "re", "torch", "transformers", "."}


LOAD = """
import sys, torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], trust_remote_code=True)
assert not any(name.startswith("siamesenorm") for name in sys.modules)
found = load_file(sys.argv[2])
logits = model(load_file(sys.argv[3])["tokens"]).logits
print((logits - found["output"]).abs().max().item() / found["output"].abs().max().item())
"""


def test_auto_class_loads_what_convert_wrote(tmp_path: Path) -> None:
    """In a process of its own, by trust_remote_code; logits are those of the engine's float32 probe."""
    saved("hybrid", tmp_path / "theirs")
    save_file({"tokens": TOKENS}, tmp_path / "in.safetensors")
    siamese("convert", tmp_path / "theirs", "--from", "hf", "--to", "hf", "-o", tmp_path / "hf")
    siamese("probe", tmp_path / "hf", "--inputs", tmp_path / "in.safetensors", "--out", tmp_path / "out.safetensors")
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    files = (str(tmp_path / name) for name in ("hf", "out.safetensors", "in.safetensors"))
    words = [sys.executable, "-c", LOAD, *files]
    run = subprocess.run(words, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout.splitlines()[-1]) < 1e-5


@pytest.mark.parametrize("case", ["pre, as GPT-2", "siamese", "hybrid", "write"])
def test_generation_with_a_cache_is_generation_without(case: str) -> None:
    model = build(case)
    prompt = TOKENS[:2, :4]
    cached = model.generate(prompt, max_new_tokens=8, do_sample=False, use_cache=True)
    plain = model.generate(prompt, max_new_tokens=8, do_sample=False, use_cache=False)
    assert cached.shape == (2, 12)
    assert torch.equal(cached, plain)


def test_a_cache_may_be_filled_in_pieces() -> None:
    model = build("siamese").double()
    whole = model(TOKENS).logits
    first = model(TOKENS[:, :5], use_cache=True)
    second = model(TOKENS[:, 5:9], past_key_values=first.past_key_values)
    third = model(TOKENS[:, 9:], past_key_values=second.past_key_values, logits_to_keep=1)
    assert relative_error(torch.cat([first.logits, second.logits], 1), whole[:, :9]) < 1e-12
    assert third.logits.shape[1] == 1
    assert relative_error(third.logits, whole[:, -1:]) < 1e-12


@pytest.mark.parametrize("case", ["pre, as GPT-2", "hybrid"])
def test_padding_on_the_left_changes_nothing(case: str) -> None:
    model = build(case).double()
    alone = model(TOKENS[:1, :6]).logits
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), TOKENS[:1, :6]], 1)
    mask = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 1]])
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = model(padded, attention_mask=mask, position_ids=places).logits
    assert relative_error(logits[:, 3:], alone) < 1e-12
    assert logits.isfinite().all()


def test_half_precision_keeps_its_streams_wide() -> None:
    model = build("siamese")
    exact = model(TOKENS).logits
    half = model.bfloat16()(TOKENS).logits
    assert half.dtype == torch.bfloat16
    assert relative_error(half, exact) < 0.05


def test_gradient_checkpointing_gives_the_same_gradients() -> None:
    gradients = []
    for recompute in (False, True):
        model = build("siamese").double().train()
        if recompute:
            model.gradient_checkpointing_enable()
        model(TOKENS, labels=TOKENS).loss.backward()
        gradients.append({name: value.grad for name, value in model.named_parameters()})
    assert all(relative_error(gradients[1][name], value) < 1e-12 for name, value in gradients[0].items())


def test_resizing_the_vocabulary_is_written_to_the_model_section(tmp_path: Path) -> None:
    for case in ("siamese", "pre, qk"):  # tied and not
        model = build(case)
        model.resize_token_embeddings(41, mean_resizing=False)
        model.save_pretrained(tmp_path / case)
        assert model(TOKENS).logits.shape[-1] == 41
        siamese("convert", tmp_path / case, "--from", "hf", "--to", "siamese", "-o", tmp_path / f"{case} back")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("peri", "the package siamesenorm has it"),
        ("siamese(x=hybrid, form=write)", "no form=write"),
        ("siamese(y=1)", "unknown option 'y=1'"),
        ("siamese(x=post", "expected pre or siamese"),
    ],
)
def test_other_schemes_are_refused_in_one_line(text: str, words: str) -> None:
    code = modelling()
    with pytest.raises(ValueError, match=words.replace("(", r"\(")) as refused:
        code.SiameseForCausalLM(code.SiameseConfig(model={**SMALL, "residual": text}))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("norm", ["dyt", "derf"])
def test_other_norms_are_refused_in_one_line(norm: str) -> None:
    code = modelling()
    with pytest.raises(ValueError, match=f"model.norm: expected rms or layer, got '{norm}'") as refused:
        code.SiameseForCausalLM(code.SiameseConfig(model={**SMALL, "norm": norm}))
    assert "\n" not in str(refused.value)


def test_learned_positions_end() -> None:
    with pytest.raises(ValueError, match="at most 16 tokens, got 17"):
        build("pre, as GPT-2")(torch.zeros(1, 17, dtype=torch.long))


def test_the_package_has_every_scheme(tmp_path: Path) -> None:
    """The registered class: the engine's junctions, equal to the modelling file where that has the scheme."""
    import siamesenorm.hf as sn_hf

    model = sn_hf.SiameseForCausalLM.from_pretrained(saved("hybrid", tmp_path / "hybrid"))
    assert type(AutoModelForCausalLM.from_pretrained(tmp_path / "hybrid")) is sn_hf.SiameseForCausalLM
    assert relative_error(model(TOKENS).logits, build("hybrid")(TOKENS).logits) < 1e-5
    half = sn_hf.SiameseForCausalLM.from_pretrained(tmp_path / "hybrid", dtype=torch.bfloat16)
    assert half.blocks[0].ffn_junction.x_norm.weight.dtype == torch.float32
    assert half.blocks[0].ffn.out.weight.dtype == torch.bfloat16
    assert relative_error(half(TOKENS).logits, model(TOKENS).logits) < 0.05


PACKAGE_CASES = {
    **{scheme: {"residual": scheme} for scheme in (
        "peri", "post", "olmo2", "hc", "resi_dual", "keel", "attn_res", "attn_res(block=2)", "lambda", "denseformer",
        "span", "mhc", "orthogonal",
    )},
    "dyt": {"norm": "dyt", "norm_alpha": 0.8},
    "yarn": {"rope_scaling": "yarn(factor=8, context=8)"},
    "llama3": {"rope_scaling": "llama3(factor=4, context=64)", "residual": "pre"},
}  # fmt: skip


@pytest.mark.parametrize("case", PACKAGE_CASES)
def test_the_package_computes_what_the_engine_does(case: str, tmp_path: Path) -> None:
    """Schemes, norms and rotary frequencies that the modelling file has not: logits in double, and generation."""
    import siamesenorm.hf as sn_hf

    torch.manual_seed(1)
    model = sn_hf.SiameseForCausalLM(sn_hf.SiameseConfig(model={**SMALL, **PACKAGE_CASES[case]})).eval()
    randomise(model)
    model.save_pretrained(tmp_path / "theirs")
    save_file({"tokens": TOKENS}, tmp_path / "in.safetensors")
    siamese("convert", tmp_path / "theirs", "--from", "hf", "--to", "siamese", "-o", tmp_path / "ours")
    siamese("probe", tmp_path / "ours", "--inputs", tmp_path / "in.safetensors", "--double", "--out",
            tmp_path / "out.safetensors")  # fmt: skip
    found = load_file(tmp_path / "out.safetensors")["output"]
    assert relative_error(model(TOKENS).logits, found) < 1e-5
    assert relative_error(model.double()(TOKENS).logits, found) < 1e-10
    cached = model.generate(TOKENS[:2, :4], max_new_tokens=6, do_sample=False, use_cache=True)
    plain = model.generate(TOKENS[:2, :4], max_new_tokens=6, do_sample=False, use_cache=False)
    assert cached.shape == (2, 10)
    assert torch.equal(cached, plain)


def test_the_start_of_element_wise_norms_is_handed_on() -> None:
    import siamesenorm.hf as sn_hf

    for given, wanted in (({"norm_alpha": 0.8}, 0.8), ({}, 0.5)):
        model = sn_hf.SiameseForCausalLM(sn_hf.SiameseConfig(model={**SMALL, "norm": "derf", **given}))
        alphas = [value for name, value in model.named_parameters() if name.endswith("alpha")]
        assert len(alphas) == 3 * 2 * 3 + 3
        assert all(alpha.item() == pytest.approx(wanted) for alpha in alphas)


def test_every_key_of_the_engine_is_known() -> None:
    """With the engine's defaults: a key that is added there has to be computed, refused or waved through here."""
    import siamesenorm as sn
    from siamesenorm.hf.configuration_siamese import DEFAULTS, WITHOUT_EFFECT

    config = {"data": {"source": "random"}, "model": {"vocab": 256, "residual": "siamese"}}
    theirs = sn.Model(config, device="meta").config["model"]
    assert theirs.keys() == {*DEFAULTS, *WITHOUT_EFFECT}
    derived = {"kv_heads": 4, "ffn_width": 1024, "positions": "rope"}
    assert {**DEFAULTS, **derived} == {key: theirs[key] for key in DEFAULTS}


REFUSED_BY_BOTH = [
    ({"rope_scalin": "none"}, "model.rope_scalin: unknown key (did you mean 'model.rope_scaling'?)"),
    ({"kvheads": 2}, "model.kvheads: unknown key (did you mean 'model.kv_heads'?)"),
    ({"xyzzy": 2}, "model.xyzzy: unknown key"),
    ({"window": 8}, "model.window: expected 0, or at least model.context (16), got 8"),
    ({"window": 8, "window_pattern": "FS"}, "got 8 with model.window_pattern FS"),
    ({"window": 16, "rope_scaling": "yarn(factor=2)", "rope_scaling_layers": "full"}, "model.rope_scaling_layers: "),
    ({"value_residual": "half"}, "model.value_residual: expected none, got half"),
    ({"depth_attention_stride": 2}, "model.depth_attention_stride: expected 0, got 2"),
    ({"positions": "sincos"}, "model.positions: expected one of rope, learned, got 'sincos'"),
    ({"ffn": "relu"}, "model.ffn: expected one of swiglu, gelu, gelu_tanh, got 'relu'"),
    ({"attention_norm": "v"}, "model.attention_norm: expected one of scheme, none, qk, qk_full, qkv, got 'v'"),
    ({"family": "moe"}, "model.family: expected lm, got 'moe'"),
]


@pytest.mark.parametrize("package", [False, True], ids=["the file alone", "the package"])
@pytest.mark.parametrize(("given", "words"), REFUSED_BY_BOTH, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_not_computed_is_refused_by_its_key(given: dict, words: str, package: bool) -> None:
    import siamesenorm.hf as sn_hf

    code = sn_hf if package else modelling()
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
        code.SiameseForCausalLM(code.SiameseConfig(model={**SMALL, **given}))
    assert "\n" not in str(refused.value)


def test_rope_scaling_needs_the_package() -> None:
    import siamesenorm.hf as sn_hf

    code, scaled = modelling(), {**SMALL, "rope_scaling": "yarn(factor=8, context=8192)"}
    with pytest.raises(ValueError, match=r"model\.rope_scaling: expected none, got 'yarn.* siamesenorm has it"):
        code.SiameseForCausalLM(code.SiameseConfig(model=scaled))
    with pytest.raises(ValueError, match=r"model\.rope_scaling: expected none, llama3"):
        sn_hf.SiameseForCausalLM(sn_hf.SiameseConfig(model={**SMALL, "rope_scaling": "linear(factor=8)"}))


@pytest.mark.parametrize("pattern", ["F", "FFFS"])
def test_a_window_that_no_block_has_is_none(pattern: str) -> None:
    code = modelling()
    config = code.SiameseConfig(model={**SMALL, "window": 8, "window_pattern": pattern})  # three blocks
    code.SiameseForCausalLM(config)
