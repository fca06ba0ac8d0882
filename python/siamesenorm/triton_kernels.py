"""Triton kernels of the op `junction`: what lies between two branches, in one pass over memory each way.

    b = gate R(z)                             branch_norm; absent: gate z
    U = x + x_branch b;   V = y_skip y + y_branch b
    X = P(U)                                  x_norm; absent: U
    m = x_scale X + Q(V)                      y_norm; absent: V. One stream (no x): m = Q(V)
    input = input_scale I(m)                  input_norm; absent: m

One kernel for every scheme that is such a pass: pre, post, peri, olmo2, lns, deepnorm, siamese in both forms, both
sites of siamese(x=hybrid). A program has a row in registers; what is computed is float32, whatever the type of the
streams and the branch. Backward is given U, V (and z where it has a norm, or a gate that learns) and computes all else
again, so nothing more is kept than on the CPU. Sums over rows (gains, biases, x_scale, gate) go in two stages: each
program adds up its own rows, in order, and a second kernel adds up the programs, in order. There are no atomics and the
partition depends on the shape alone: the same input gives the same bits.

triton_junction.py launches these, triton_ops.py registers them for CUDA. On the CPU they run in Triton's interpreter
(TRITON_INTERPRET=1, set before triton is imported), which is how they are tested.
"""

# In every kernel: *_ptr and what is written are dense [rows, cols]; gains, biases and scale [cols]; gate [samples,
# cols]. NORM_*: 0 absent, 1 RMSNorm, 2 LayerNorm. AFFINE: a bit for each gain and bias that is there, in the order of
# the arguments. The kernels are long because everything that may be absent is an `if` that the compiler decides.
# ruff: noqa: PLR0912, PLR0915, RUF059
import triton
import triton.language as tl


@triton.jit
def _unit(v, mask, cols, eps, KIND: tl.constexpr):
    """The row without its size (and mean), 1 / deviation, mean."""
    mean = 0.0
    if KIND == 2:
        mean = tl.sum(v, 0) / cols
        v = tl.where(mask, v - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(v * v, 0) / cols + eps)
    return v * rstd, rstd, mean


@triton.jit
def _vector(pointer, at, mask, HAS: tl.constexpr, other: tl.constexpr):
    """A gain, bias or scale; absent: a number."""
    value = other
    if HAS:
        value = tl.load(pointer + at, mask=mask, other=0.0).to(tl.float32)
    return value


@triton.jit
def _unit_back(d, unit, rstd, cols, KIND: tl.constexpr):
    """What comes back to the row from what comes back to `unit`. Both are 0 past the last column."""
    result = d - unit * (tl.sum(d * unit, 0) / cols)
    if KIND == 2:
        result -= tl.sum(d, 0) / cols
    return result * rstd


@triton.jit
def forward_kernel(
    z_ptr, x_ptr, y_ptr, scale_ptr, gate_ptr, gain_b, bias_b, gain_x, bias_x, gain_y, bias_y, gain_i, bias_i,
    v_out, x_out, input_out, u_out, statistics,
    rows, cols, rows_of_gate, x_branch, y_branch, y_skip, input_scale, eps_b, eps_x, eps_y, eps_i,
    BRANCH: tl.constexpr, X: tl.constexpr, ADDS_TO_X: tl.constexpr, SCALE: tl.constexpr, GATE: tl.constexpr,
    NORM_B: tl.constexpr, NORM_X: tl.constexpr, NORM_Y: tl.constexpr, NORM_I: tl.constexpr, AFFINE: tl.constexpr,
    AT_B: tl.constexpr, AT_X: tl.constexpr, AT_Y: tl.constexpr, AT_I: tl.constexpr,
    MAKES_V: tl.constexpr, MAKES_X: tl.constexpr, MAKES_INPUT: tl.constexpr, MAKES_U: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    here = row * cols + at
    v = tl.load(y_ptr + here, mask=mask, other=0.0).to(tl.float32) * y_skip
    if X:
        u = tl.load(x_ptr + here, mask=mask, other=0.0).to(tl.float32)
    if BRANCH:
        b = tl.load(z_ptr + here, mask=mask, other=0.0).to(tl.float32)
        if NORM_B != 0:
            b, rstd, mean = _unit(b, mask, cols, eps_b, NORM_B)
            if NORM_B == 2:
                tl.store(statistics + AT_B * rows + row, mean)
            tl.store(statistics + (AT_B + NORM_B - 1) * rows + row, rstd)
            b = b * _vector(gain_b, at, mask, AFFINE & 1, 1.0) + _vector(bias_b, at, mask, AFFINE & 2, 0.0)
        if GATE:
            b *= tl.load(gate_ptr + (row // rows_of_gate) * cols + at, mask=mask, other=0.0).to(tl.float32)
        b = tl.where(mask, b, 0.0)
        v += y_branch * b
        if ADDS_TO_X:
            u += x_branch * b
    # What backward will find: a stream of a half type is rounded before its norm.
    v = v.to(y_ptr.dtype.element_ty).to(tl.float32)
    if MAKES_V:
        tl.store(v_out + here, v, mask=mask)
    merged = v
    if NORM_Y != 0:
        merged, rstd, mean = _unit(v, mask, cols, eps_y, NORM_Y)
        if NORM_Y == 2:
            tl.store(statistics + AT_Y * rows + row, mean)
        tl.store(statistics + (AT_Y + NORM_Y - 1) * rows + row, rstd)
        merged = merged * _vector(gain_y, at, mask, AFFINE & 16, 1.0) + _vector(bias_y, at, mask, AFFINE & 32, 0.0)
    if X:
        u = u.to(y_ptr.dtype.element_ty).to(tl.float32)
        if MAKES_U:
            tl.store(u_out + here, u, mask=mask)
        if NORM_X != 0:
            u, rstd, mean = _unit(u, mask, cols, eps_x, NORM_X)
            if NORM_X == 2:
                tl.store(statistics + AT_X * rows + row, mean)
            tl.store(statistics + (AT_X + NORM_X - 1) * rows + row, rstd)
            u = u * _vector(gain_x, at, mask, AFFINE & 4, 1.0) + _vector(bias_x, at, mask, AFFINE & 8, 0.0)
        if MAKES_X:
            tl.store(x_out + here, u, mask=mask)
        merged += u * _vector(scale_ptr, at, mask, SCALE, 1.0)
    if NORM_I != 0:
        merged = tl.where(mask, merged, 0.0)
        merged, rstd, mean = _unit(merged, mask, cols, eps_i, NORM_I)
        if NORM_I == 2:
            tl.store(statistics + AT_I * rows + row, mean)
        tl.store(statistics + (AT_I + NORM_I - 1) * rows + row, rstd)
        merged = merged * _vector(gain_i, at, mask, AFFINE & 64, 1.0) + _vector(bias_i, at, mask, AFFINE & 128, 0.0)
    if MAKES_INPUT:
        tl.store(input_out + here, merged * input_scale, mask=mask)


@triton.jit
def backward_kernel(
    dv_ptr, dx_ptr, di_ptr, z_ptr, u_ptr, v_ptr, scale_ptr, gate_ptr,
    gain_b, bias_b, gain_x, bias_x, gain_y, bias_y, gain_i, bias_i, d_branch, d_x, d_y, sums,
    cols, group_rows, part_rows, group_parts, parts,
    x_branch, y_branch, y_skip, input_scale, eps_b, eps_x, eps_y, eps_i,
    DV: tl.constexpr, DX: tl.constexpr, DI: tl.constexpr, Z: tl.constexpr, X: tl.constexpr, SCALE: tl.constexpr,
    GATE: tl.constexpr, NORM_B: tl.constexpr, NORM_X: tl.constexpr, NORM_Y: tl.constexpr, NORM_I: tl.constexpr,
    AFFINE: tl.constexpr, TO_BRANCH: tl.constexpr, D_BRANCH: tl.constexpr, D_X: tl.constexpr, D_Y: tl.constexpr,
    S_SCALE: tl.constexpr, S_GATE: tl.constexpr, S_GB: tl.constexpr, S_BB: tl.constexpr, S_GX: tl.constexpr,
    S_BX: tl.constexpr, S_GY: tl.constexpr, S_BY: tl.constexpr, S_GI: tl.constexpr, S_BI: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """A program's rows lie in one group (with a gate: in one sample). S_*: the place of a sum among `sums`, or -1."""
    part = tl.program_id(0)
    group = part // group_parts
    begin = group * group_rows + (part % group_parts) * part_rows
    end = tl.minimum(begin + part_rows, (group + 1) * group_rows)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    sum_scale = tl.zeros([BLOCK], tl.float32)
    sum_gate = tl.zeros([BLOCK], tl.float32)
    sum_gb = tl.zeros([BLOCK], tl.float32)
    sum_bb = tl.zeros([BLOCK], tl.float32)
    sum_gx = tl.zeros([BLOCK], tl.float32)
    sum_bx = tl.zeros([BLOCK], tl.float32)
    sum_gy = tl.zeros([BLOCK], tl.float32)
    sum_by = tl.zeros([BLOCK], tl.float32)
    sum_gi = tl.zeros([BLOCK], tl.float32)
    sum_bi = tl.zeros([BLOCK], tl.float32)
    wide = tl.full([1], 1, tl.int64)
    for row in range(begin, end):
        here = wide * row * cols + at
        v = tl.load(v_ptr + here, mask=mask, other=0.0).to(tl.float32)
        # Forward once more, as far as it is needed.
        v_rstd = 1.0
        if NORM_Y != 0:
            v, v_rstd, v_mean = _unit(v, mask, cols, eps_y, NORM_Y)  # from here on without its size
        if X:
            u = tl.load(u_ptr + here, mask=mask, other=0.0).to(tl.float32)
            u_rstd = 1.0
            x = u
            if NORM_X != 0:
                u, u_rstd, u_mean = _unit(u, mask, cols, eps_x, NORM_X)
                x = u * _vector(gain_x, at, mask, AFFINE & 4, 1.0) + _vector(bias_x, at, mask, AFFINE & 8, 0.0)
        scale = _vector(scale_ptr, at, mask, SCALE, 1.0)
        # dm, what comes back to the merged row.
        dm = tl.zeros([BLOCK], tl.float32)
        if DI:
            dm = tl.load(di_ptr + here, mask=mask, other=0.0).to(tl.float32) * input_scale
            if NORM_I != 0:
                merged = v
                if NORM_Y != 0:
                    merged = v * _vector(gain_y, at, mask, AFFINE & 16, 1.0)
                    merged += _vector(bias_y, at, mask, AFFINE & 32, 0.0)
                if X:
                    merged += x * scale
                merged = tl.where(mask, merged, 0.0)
                merged, m_rstd, m_mean = _unit(merged, mask, cols, eps_i, NORM_I)
                if S_GI >= 0:
                    sum_gi += dm * merged
                if S_BI >= 0:
                    sum_bi += dm
                dm = dm * _vector(gain_i, at, mask, AFFINE & 64, 1.0)
                dm = _unit_back(dm, merged, m_rstd, cols, NORM_I)
        dm = tl.where(mask, dm, 0.0)
        # To V and U.
        dv = dm
        if NORM_Y != 0:
            if S_GY >= 0:
                sum_gy += dm * v
            if S_BY >= 0:
                sum_by += dm
            dv = _unit_back(dm * _vector(gain_y, at, mask, AFFINE & 16, 1.0), v, v_rstd, cols, NORM_Y)
        if DV:
            dv += tl.load(dv_ptr + here, mask=mask, other=0.0).to(tl.float32)
        back = y_branch * dv
        if X:
            if S_SCALE >= 0:
                sum_scale += dm * x
            du = dm * scale
            if DX:
                du += tl.load(dx_ptr + here, mask=mask, other=0.0).to(tl.float32)
            if NORM_X != 0:
                if S_GX >= 0:
                    sum_gx += du * u
                if S_BX >= 0:
                    sum_bx += du
                du = _unit_back(du * _vector(gain_x, at, mask, AFFINE & 4, 1.0), u, u_rstd, cols, NORM_X)
            back += x_branch * du
            if D_X:
                tl.store(d_x + here, du, mask=mask)
        if D_Y:
            tl.store(d_y + here, y_skip * dv, mask=mask)
        # And to the branch.
        if TO_BRANCH:
            back = tl.where(mask, back, 0.0)
            if Z:
                z = tl.load(z_ptr + here, mask=mask, other=0.0).to(tl.float32)
                b = z
                if NORM_B != 0:
                    z, z_rstd, z_mean = _unit(z, mask, cols, eps_b, NORM_B)
                    b = z * _vector(gain_b, at, mask, AFFINE & 1, 1.0) + _vector(bias_b, at, mask, AFFINE & 2, 0.0)
                if S_GATE >= 0:
                    sum_gate += back * b
            if GATE:
                back *= tl.load(gate_ptr + group * cols + at, mask=mask, other=0.0).to(tl.float32)
            if NORM_B != 0:
                if S_GB >= 0:
                    sum_gb += back * z
                if S_BB >= 0:
                    sum_bb += back
                back = _unit_back(back * _vector(gain_b, at, mask, AFFINE & 1, 1.0), z, z_rstd, cols, NORM_B)
            if D_BRANCH:
                tl.store(d_branch + here, back, mask=mask)
    if S_SCALE >= 0:
        tl.store(sums + (S_SCALE * parts + part) * cols + at, sum_scale, mask=mask)
    if S_GATE >= 0:
        tl.store(sums + (S_GATE * parts + part) * cols + at, sum_gate, mask=mask)
    if S_GB >= 0:
        tl.store(sums + (S_GB * parts + part) * cols + at, sum_gb, mask=mask)
    if S_BB >= 0:
        tl.store(sums + (S_BB * parts + part) * cols + at, sum_bb, mask=mask)
    if S_GX >= 0:
        tl.store(sums + (S_GX * parts + part) * cols + at, sum_gx, mask=mask)
    if S_BX >= 0:
        tl.store(sums + (S_BX * parts + part) * cols + at, sum_bx, mask=mask)
    if S_GY >= 0:
        tl.store(sums + (S_GY * parts + part) * cols + at, sum_gy, mask=mask)
    if S_BY >= 0:
        tl.store(sums + (S_BY * parts + part) * cols + at, sum_by, mask=mask)
    if S_GI >= 0:
        tl.store(sums + (S_GI * parts + part) * cols + at, sum_gi, mask=mask)
    if S_BI >= 0:
        tl.store(sums + (S_BI * parts + part) * cols + at, sum_bi, mask=mask)


@triton.jit
def add_parts_kernel(sums, out, parts, cols, BLOCK: tl.constexpr):
    """sums [n, parts, cols] -> out [n, cols], parts in order."""
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < cols
    first = tl.program_id(0) * parts
    total = tl.zeros([BLOCK], tl.float32)
    for part in range(0, parts):
        total += tl.load(sums + (first + part) * cols + at, mask=mask, other=0.0)
    tl.store(out + tl.program_id(0) * cols + at, total, mask=mask)
