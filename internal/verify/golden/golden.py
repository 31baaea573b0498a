"""Writes the golden data of package golden: results and gradients of operations by PyTorch.

How to run it, on Debian 12 with python3-torch (PyTorch 1.13.1) and python3-numpy:

    /usr/bin/python3 internal/verify/golden/golden.py

It writes testdata/*.json.gz beside itself, the same bytes at every run on one kind of processor, and
prints how much that is. Names of operations after it write only the files that have these:

    /usr/bin/python3 internal/verify/golden/golden.py matmul einsum

A file is a list of cases, each on a line:

    op          the name of the operation, below
    name        the name of the case, op/variant, which is unique
    attrs       what the operation takes besides arrays
    inputs      arrays: shape, type (f64, i64 or bool), and data, the elements in order
    outputs     what PyTorch returns for them in float64
    cotangents  for each output of f64 a random array, the gradient of something by that output;
                for others null; no list at all where the case has no gradients
    grads       the gradient of that something by each input of f64; for others null
    only        "f64" if the case makes no sense in float32, else absent

NaN and the infinities are the strings "nan", "inf" and "-inf", bools are 0 and 1. Inputs and
cotangents are numbers of float32, so that float32 begins from the same ones. Random inputs have no
ties; the cases "ties" show what PyTorch does with them: a maximum or minimum shares the gradient
equally among equal elements.

Operations by name, with their inputs and attributes. Axes may be negative. axes is a list, or null
for all; a length of -1 and a null in a list mean what they do in NumPy.

One input, element by element:
    neg abs sqrt rsqrt exp exp2 expm1 log log2 log1p sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc sigmoid
    floor ceil trunc round relu gelu gelu_tanh silu softplus mish hard_sigmoid hard_tanh square
    reciprocal sign isnan not
    leaky_relu(slope) elu(alpha) pow_scalar(exponent)
    clamp(lo, hi: number or null)
    cast(through: list of types, one after the other)
Two inputs, stretched as NumPy does:
    add sub mul div quo rem minimum maximum pow atan2 copysign eq ne lt le gt ge and or xor
    quo and rem round toward zero; and, or and xor are those of bools.
Three inputs, stretched:
    where: condition, x, y            clamp_by: x, lo, hi
Reductions:
    sum prod mean max min all any logsumexp (axes, keepdims)
    var std (axes, keepdims, correction)
    norm (axes, keepdims, p: number or "inf")
    argmax argmin (axis): the first of equals, the first NaN
    cumsum softmax log_softmax (axis)
Views:
    permute(order) transpose(a, b) reshape(shape) flip(axes) expand(shape) squeeze(axes) unsqueeze(axis)
    slice(ranges: [start, stop, step] of the first dimensions, null for what Python leaves out)
Products:
    matmul (transpose_a, transpose_b): NumPy's, of operands whose last two dimensions are exchanged
        first where the attribute says so
    einsum (spec): any number of inputs
Joining and repeating:
    concat stack (axis): any number of inputs
    split (axis, lengths): as many outputs
    pad (mode: constant, reflect, symmetric, replicate, circular; margins: [before, after] of each dimension;
        value, of mode constant)
    tile (repeats) roll (shifts, axes)
    repeat (axis, n): each element n times
Matrices in the last two dimensions; k counts diagonals from the main one upward:
    tril triu (k): zeros beyond the diagonal
    diagonal (k)    diag: a matrix with a vector as its diagonal, zeros elsewhere
Indices; negative ones count from the end, those beyond the ends read 0 and write nothing:
    take (axis): x, index; the axis is replaced by the dimensions of index
    take_along (axis): x, index, which stretch along the other dimensions
    embedding: weights of two dimensions, index; rows of the weights
    scatter_add scatter (axis): x, index, src of the shape of index; x with src added or stored at
        index along axis; scatter's indices are different in each row
    index_add index_set (axis): x, index of one dimension, src of x's shape, but for the axis, which
        is as long as index
    one_hot (n): index
Order; NaN is larger than all numbers, equal elements keep their order:
    sort (axis, descending): two outputs, values and their old indices
    argsort (axis, descending)
    topk (k, axis, largest): two outputs, values and indices, the first of equals first
Normalization; eps is inside the root:
    layer_norm (eps): x, gamma, beta, over the last dimensions, which are gamma's
    rms_norm (eps): x, gamma, over the last dimensions, which are gamma's
    batch_norm (eps): x, gamma, beta: by mean and biased variance of dimension 1
    batch_norm_inference (eps): x, gamma, beta, mean, variance
    group_norm (groups, eps): x, gamma, beta
Convolution and pooling, of N C [[D] H] W; the attributes are lists, with one number for each of
D, H, W:
    conv1d conv2d conv3d (stride, padding, dilation, groups): x, weights, bias where there is one
    conv_transpose1d conv_transpose2d (stride, padding, output_padding, dilation, groups): the same
    max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d (kernel, stride, padding): what
        is padded counts in no average
    global_max_pool global_avg_pool: over all dimensions from the third, which stay with length 1
Attention:
    attention (causal, offset, scale: number or null for 1/√width): q (batch, heads, queries, width),
        k and v (batch, heads that divide q's, keys, width), and where there is one a mask of bools,
        stretched to (batch, heads, queries, keys), of what a query sees. causal: query i sees the
        keys up to i + offset. A query that sees nothing has the result 0.
Losses, of neural networks' usual names, p first, then what it should be:
    loss_mse loss_mae loss_bce loss_cce loss_sparse_cce (labels), loss_softmax_cce (logits; smoothing),
    loss_sparse_softmax_cce (logits, labels; smoothing), loss_sigmoid_bce (logits), loss_huber(delta),
    loss_hinge loss_squared_hinge loss_kl loss_poisson loss_cosine loss_log_cosh loss_quantile(q)
Layers of neural networks; matrices of parameters are [in, out], and lengths are the steps of each example that count:
    layer_activation(name): x       layer_prelu: x, slope of each channel
    layer_dense(act): x, weight, bias
    layer_conv(stride, padding, dilation, groups): x, weight, bias; a padding of null makes as many results as inputs
    layer_batch_norm: x, weight, bias, running mean, running variance; three outputs: in training, and the next statistics
    layer_batch_norm_inference: the same five
    layer_embedding: weight, index
    layer_rnn layer_gru layer_lstm (sequences): x, weight, recurrent, bias, of gru recurrent_bias, lengths where there are any
    layer_attention(heads, causal): x, weight and bias of query, weight of key, whose bias is 0.5 and has a gradient of 0, weight and bias of value and out,
        lengths where there are any
    layer_transformer(heads, after): x, weight and bias of norm1, of attention as before, of norm2, wide and narrow
    loss_weighted_softmax_cce (weights, smoothing): logits, labels
Optimizers:
    optimizer(name, settings, rate): three tensors and as many targets; ten steps down Σ (1 - cos(p - target)) + (p·target)²/8
"""
import gzip
import io
import json
import math
import os
import sys
import zlib

os.environ["ATEN_CPU_CAPABILITY"] = "default"  # no vector instructions, so that processors differ less

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)

ops = {}  # by name: the functions of tensors and attributes
files = {}  # by name: the cases, in order
current = None  # the list of cases of the file that is being described


def op(f):
    """Registers an operation under the name of its function, without underscores at its end."""
    ops[f.__name__.rstrip("_")] = f
    return f


def group(name):
    """Begins a file."""
    global current
    current = files.setdefault(name, [])


# Inputs: functions of a generator, which is that of the case.


def uniform(shape, lo=-2.0, hi=2.0):
    return lambda rng: rng.uniform(lo, hi, shape).astype(np.float32).astype(np.float64)


def away(shape, lo=0.5, hi=2.0):
    """Numbers of both signs that are not near 0."""
    return lambda rng: (rng.uniform(lo, hi, shape) * rng.choice([-1.0, 1.0], shape)).astype(np.float32).astype(np.float64)


def halves(shape):
    """Few different numbers, so that there are ties."""
    return lambda rng: rng.integers(-3, 4, shape).astype(np.float64) / 2


def coarse(shape, lo=-2, hi=2):
    """Numbers that compress well, for long inputs; they are all different in up to 1024 elements."""
    return lambda rng: lo + (hi - lo) * rng.permutation(1024)[: math.prod(shape)].reshape(shape) / 1024.0


def ints(shape, lo=-5, hi=6):
    return lambda rng: rng.integers(lo, hi, shape)


def bools(shape, p=0.5):
    return lambda rng: rng.random(shape) < p


def rows(shape, lo=0.1, hi=1.0):
    """Positive numbers whose last dimension adds up to about 1."""

    def make(rng):
        x = rng.uniform(lo, hi, shape)
        return (x / x.sum(-1, keepdims=True)).astype(np.float32).astype(np.float64)

    return make


def signs(shape):
    return lambda rng: rng.choice([-1.0, 1.0], shape)


def different(shape, n, axis):
    """Indices below n that are different along an axis."""

    def make(rng):
        full = list(shape)
        full[axis] = n
        order = np.argsort(rng.random(full), axis=axis)
        return np.take(order, np.arange(shape[axis]), axis=axis)

    return make


def given(*data, shape=None):
    def make(rng):
        x = np.array(data)
        return x if shape is None else x.reshape(shape)

    return make


nan, inf = math.nan, math.inf


def case(op_, variant, *inputs, grad=True, only=None, **attrs):
    """Computes a case of the current file."""
    full = f"{op_}/{variant}"
    rng = np.random.default_rng(zlib.crc32(full.encode()))
    arrays = [make(rng) for make in inputs]
    xs = [torch.tensor(np.asarray(a)) for a in arrays]
    for x in xs:
        assert x.dtype in (torch.float64, torch.int64, torch.bool), full
        if x.dtype == torch.float64:
            assert np.array_equal(x.float().double(), x, equal_nan=True), full
            x.requires_grad_(grad)
    ys = ops[op_](*xs, **attrs)
    ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
    c = {"op": op_, "name": full, "attrs": {k: number(v) for k, v in attrs.items()}, "inputs": [array(x) for x in xs], "outputs": [array(y) for y in ys]}
    if only:
        c["only"] = only
    wrt = [x for x in xs if x.requires_grad]
    by = [y for y in ys if y.dtype == torch.float64]
    if wrt and by:
        cots = [torch.tensor(uniform(tuple(y.shape), -1, 1)(rng)) for y in by]
        reached = [(y, g) for y, g in zip(by, cots) if y.requires_grad]
        grads = [None] * len(wrt)
        if reached:
            grads = torch.autograd.grad([y for y, _ in reached], wrt, [g for _, g in reached], allow_unused=True)
        found = {id(x): torch.zeros_like(x) if g is None else g for x, g in zip(wrt, grads)}
        it = iter(cots)
        c["cotangents"] = [array(next(it)) if y.dtype == torch.float64 else None for y in ys]
        c["grads"] = [array(found[id(x)]) if id(x) in found else None for x in xs]
    assert all(o["name"] != full for cs in files.values() for o in cs), f"{full} twice"
    current.append(c)


def array(t):
    kind = {torch.float64: "f64", torch.int64: "i64", torch.bool: "bool"}[t.dtype]
    flat = t.detach().contiguous().reshape(-1)
    if kind == "bool":
        flat = flat.to(torch.int64)
    return {"shape": list(t.shape), "type": kind, "data": [number(v) for v in flat.tolist()]}


def number(v):
    if isinstance(v, float):
        if math.isnan(v):
            return "nan"
        if math.isinf(v):
            return "inf" if v > 0 else "-inf"
        if v == int(v) and abs(v) < 1e15 and (v or math.copysign(1, v) > 0):
            return int(v)  # shorter than 1.0
    return v


# Element by element

group("unary")

for name in "neg abs sqrt rsqrt exp exp2 expm1 log log2 log1p sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc sigmoid floor ceil trunc round relu square reciprocal isnan".split():
    ops[name] = getattr(torch, name)


@op
def not_(x):
    return torch.logical_not(x)


@op
def sign(x):
    return torch.where(torch.isnan(x), x, torch.sign(x))  # PyTorch's of NaN is 0


@op
def leaky_relu(x, slope):
    return F.leaky_relu(x, slope)


@op
def elu(x, alpha):
    return F.elu(x, alpha)


@op
def gelu(x):
    return F.gelu(x)


@op
def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


@op
def silu(x):
    return F.silu(x)


@op
def softplus(x):
    return torch.logaddexp(x, torch.zeros_like(x))  # PyTorch's own is x from 20 on


@op
def mish(x):
    return x * torch.tanh(softplus(x))


@op
def hard_sigmoid(x):
    return ((x + 1) / 2).clamp(0, 1)


@op
def hard_tanh(x):
    return x.clamp(-1, 1)


@op
def pow_scalar(x, exponent):
    return torch.pow(x, exponent)


@op
def clamp(x, lo, hi):
    return torch.clamp(x, lo, hi)


@op
def cast(x, through):
    kinds = {"f64": torch.float64, "i64": torch.int64, "bool": torch.bool}
    for k in through:
        x = x.to(kinds[k])
    return x


special = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 80.0, -80.0, 0.5]
finite = special[3:]
near = special + [s * (1 - 2.0**-k) for s in (1, -1) for k in (10, 20, 24)]  # to 1, as float32 has it
unary = {  # the range of random inputs, and those of a case without gradients
    "neg": (-2, 2, special), "abs": (-2, 2, special), "sqrt": (0.1, 4, special), "rsqrt": (0.1, 4, special),
    "exp": (-3, 3, special), "exp2": (-3, 3, special), "expm1": (-2, 2, special + [2.0**-20]),
    "log": (0.1, 5, special), "log2": (0.1, 5, special), "log1p": (-0.8, 3, special + [2.0**-20]),
    "sin": (-7, 7, special), "cos": (-7, 7, special), "tan": (-1.4, 1.4, special),
    "sinh": (-3, 3, special), "cosh": (-3, 3, special), "tanh": (-3, 3, special), "atan": (-4, 4, special),
    "asin": (-0.9, 0.9, near), "acos": (-0.9, 0.9, near), "asinh": (-4, 4, near), "acosh": (1.2, 5, near), "atanh": (-0.9, 0.9, near),
    "erf": (-2.5, 2.5, special), "erfc": (-2.5, 2.5, special), "sigmoid": (-5, 5, special),
    "floor": (-5, 5, special), "ceil": (-5, 5, special), "trunc": (-5, 5, special),
    "round": (-5, 5, special + [-2.5, -1.5, -0.5, 1.5, 2.5]),
    "relu": (-2, 2, special), "gelu": (-4, 4, finite), "gelu_tanh": (-4, 4, finite), "silu": (-5, 5, finite),
    "softplus": (-5, 5, special), "mish": (-5, 5, finite), "hard_sigmoid": (-2, 2, special), "hard_tanh": (-2, 2, special),
    "square": (-2, 2, special), "reciprocal": (0.4, 3, special), "sign": (-2, 2, special), "isnan": (-2, 2, special),
}
for name, (lo, hi, values) in unary.items():
    for shape in [(), (7,), (2, 3, 5), (1, 2, 1, 3, 2)]:
        case(name, f"rank {len(shape)}", uniform(shape, lo, hi))
    case(name, "special", given(*values), grad=False)
for name in ["neg", "exp", "relu", "isnan"]:
    case(name, "empty", uniform((3, 0, 2)))
case("relu", "ties", given(-1.0, 0.0, 1.0))
case("abs", "ties", given(-1.0, 0.0, 1.0))
case("hard_sigmoid", "ties", given(-1.0, 0.25, 1.0))
case("hard_tanh", "ties", given(-1.0, 0.25, 1.0))
case("neg", "i64", ints((2, 5)))
case("abs", "i64", ints((2, 5)))
case("square", "i64", ints((2, 5)))
case("not", "bools", bools((3, 5)))
for slope in [0.01, 0.25]:
    case("leaky_relu", f"slope {slope}", uniform((3, 7)), slope=slope)
for alpha in [1.0, 0.5]:
    case("elu", f"alpha {alpha}", uniform((3, 7)), alpha=alpha)
for exponent in [2, 3, 1, 0, -1, -2]:
    case("pow_scalar", f"exponent {exponent}", away((3, 5)), exponent=exponent)
for exponent in [0.5, -0.5, 2.5, 1 / 3]:
    case("pow_scalar", f"exponent {exponent:.2}", uniform((3, 5), 0.2, 3), exponent=exponent)
for lo, hi in [(-0.5, 0.75), (None, 0.5), (-0.5, None), (0.5, 0.5)]:
    case("clamp", f"{lo} to {hi}", uniform((3, 7)), lo=lo, hi=hi)
case("clamp", "special", given(nan, inf, -inf, 0.0, 1.0), grad=False, lo=-0.5, hi=0.5)
case("clamp", "ties", given(-0.5, 0.0, 0.5), lo=-0.5, hi=0.5)
case("clamp", "i64", ints((2, 7)), lo=-2, hi=3)
case("cast", "f64 i64", uniform((3, 5), -9, 9), through=["i64"])
case("cast", "f64 i64 f64", uniform((3, 5), -9, 9), through=["i64", "f64"])
case("cast", "f64 bool", halves((3, 5)), through=["bool"])
case("cast", "i64 f64", ints((7,)), through=["f64"])
case("cast", "i64 bool i64", ints((7,)), through=["bool", "i64"])
case("cast", "bool f64", bools((7,)), through=["f64"])
case("cast", "scalar", uniform((), 2, 9), through=["i64"])

group("binary")

for name in "add sub mul div pow atan2 copysign eq ne lt le gt ge where".split():
    ops[name] = getattr(torch, name)
ops["minimum"], ops["maximum"], ops["rem"] = torch.minimum, torch.maximum, torch.fmod
ops["and"], ops["or"], ops["xor"] = torch.logical_and, torch.logical_or, torch.logical_xor


@op
def quo(x, y):
    return torch.div(x, y, rounding_mode="trunc")


@op
def clamp_by(x, lo, hi):
    return torch.minimum(torch.maximum(x, lo), hi)


pairs = [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 1, 5), (3, 1)), ((1,), (7,)), ((0, 3), (1, 3)),
         ((2, 1, 3, 1, 2), (3, 1, 2, 1)), ((5, 7), (5, 7))]
general, divisor = (uniform, uniform), (uniform, away)
positive = (lambda s: uniform(s, 0.2, 3), lambda s: uniform(s, -2, 2))
binary = {"add": general, "sub": general, "mul": general, "div": divisor, "quo": (lambda s: uniform(s, -9, 9), away),
          "rem": (lambda s: uniform(s, -9, 9), away), "minimum": general, "maximum": general, "pow": positive, "atan2": (away, away),
          "copysign": (away, away), "eq": (halves, halves), "ne": (halves, halves), "lt": (halves, halves), "le": (halves, halves),
          "gt": (halves, halves), "ge": (halves, halves), "and": (bools, bools), "or": (bools, bools), "xor": (bools, bools)}
for name, (left, right) in binary.items():
    for a, b in pairs:
        case(name, f"{list(a)} {list(b)}", left(a), right(b))
for name in "add sub mul minimum maximum eq ne lt le gt ge".split():
    case(name, "i64", ints((2, 5)), ints((5,)))
for name in ["quo", "rem"]:
    case(name, "i64", ints((3, 7), -20, 21), given(-3, 2, 5, 7, -1, 4, 3))
for name in ["minimum", "maximum"]:
    case(name, "ties", given(1.0, 2.0, 3.0), given(1.0, 3.0, 2.0))
grid = np.array([nan, inf, -inf, 0.0, -0.0, 1.0, -2.0, 0.5, 3.0])
for name in "add sub mul div minimum maximum pow atan2 copysign eq ne lt le gt ge".split():
    case(name, "special", given(*grid, shape=(9, 1)), given(*grid), grad=False)
case("rem", "special", given(5.0, -5.0, 5.0, inf, nan, 1.0, -5.5), given(-3.0, 3.0, inf, 1.0, 1.0, 0.0, 2.0), grad=False)
case("pow", "negative base", given(-1.5, -2.0, -0.5, 0.0, 2.0), given(2.0, 3.0, -1.0, 2.0, -2.0), grad=False)

for c, a, b in [((), (), ()), ((2, 3), (3,), (2, 1)), ((3, 1), (2, 1, 5), ()), ((5,), (2, 5), (2, 5)), ((2, 0), (1,), (2, 1))]:
    case("where", f"{list(c)} {list(a)} {list(b)}", bools(c), uniform(a), uniform(b))
case("where", "i64", bools((2, 3)), ints((2, 3)), ints((3,)))
case("where", "hides NaN", given(True, False, True, False), given(1.0, nan, 2.0, inf), given(nan, 3.0, inf, 4.0), grad=False)
case("clamp_by", "same shapes", uniform((3, 5)), uniform((3, 5), -1, -0.2), uniform((3, 5), 0.2, 1))
case("clamp_by", "stretched", uniform((2, 3, 5)), uniform((3, 1), -1, -0.2), uniform((5,), 0.2, 1))

# Reductions

group("reduce")


def all_axes(x, axes):
    return list(range(x.dim())) if axes is None else axes


def one_by_one(f, x, axes, keepdims):
    """Reduces axes one after the other."""
    axes = sorted(a % x.dim() for a in all_axes(x, axes)) if x.dim() else []
    for a in reversed(axes):
        x = f(x, a, keepdims)
    return x


@op
def sum_(x, axes, keepdims):
    return torch.sum(x, all_axes(x, axes), keepdims)


@op
def prod(x, axes, keepdims):
    return one_by_one(torch.prod, x, axes, keepdims)


@op
def mean(x, axes, keepdims):
    return torch.mean(x, all_axes(x, axes), keepdims)


@op
def var(x, axes, keepdims, correction):
    return torch.var(x, all_axes(x, axes), correction=correction, keepdim=keepdims)


@op
def std(x, axes, keepdims, correction):
    return torch.std(x, all_axes(x, axes), correction=correction, keepdim=keepdims)


@op
def all_(x, axes, keepdims):
    return one_by_one(torch.all, x, axes, keepdims)


@op
def any_(x, axes, keepdims):
    return one_by_one(torch.any, x, axes, keepdims)


@op
def logsumexp(x, axes, keepdims):
    return torch.logsumexp(x, all_axes(x, axes), keepdims)


@op
def norm(x, axes, keepdims, p):
    return torch.linalg.vector_norm(x, float(p), all_axes(x, axes), keepdims)


@op
def argmax(x, axis):
    return torch.tensor(np.argmax(x.detach().numpy(), axis))


@op
def argmin(x, axis):
    return torch.tensor(np.argmin(x.detach().numpy(), axis))


@op
def max_(x, axes, keepdims):
    return torch.amax(x, all_axes(x, axes), keepdims)


@op
def min_(x, axes, keepdims):
    return torch.amin(x, all_axes(x, axes), keepdims)


extents = [((7,), [0]), ((2, 3, 5), [1]), ((2, 3, 5), [0, 2]), ((2, 3, 5), [-1]), ((2, 3, 5), None), ((2, 1, 3, 2, 5), [1, -1]),
           ((2, 2, 3, 2), [0, 2]), ((5, 1, 3), [1]), ((), None), ((13, 3), [0])]
floats = {"sum": {}, "mean": {}, "max": {}, "min": {}, "logsumexp": {}, "prod": {},
          "var": {"correction": 0}, "std": {"correction": 1}, "norm": {"p": 2}}
for name, attrs in floats.items():
    make = away if name in ("prod", "norm") else uniform
    for shape, axes in extents:
        if name in ("var", "std") and (shape == () or shape == (5, 1, 3)):
            continue  # the variance of one element
        for keepdims in [False, True]:
            if keepdims and (shape == () or len(shape) > 3):
                continue
            case(name, f"{list(shape)} over {axes}{' kept' if keepdims else ''}", make(shape), axes=axes, keepdims=keepdims, **attrs)
    if name != "prod":
        case(name, "long row", coarse((2, 499)), axes=[1], keepdims=False, **attrs)
        case(name, "long column", coarse((331, 3)), axes=[0], keepdims=False, **attrs)
for shape, axes in [((2, 3, 5), [1]), ((2, 3, 5), [0, -1]), ((11,), None)]:
    case("var", f"{list(shape)} over {axes} corrected", uniform(shape), axes=axes, keepdims=False, correction=1)
    case("std", f"{list(shape)} over {axes} not corrected", uniform(shape), axes=axes, keepdims=False, correction=0)
    for p in [1, "inf", 3]:
        case("norm", f"{list(shape)} over {axes}, p {p}", away(shape), axes=axes, keepdims=False, p=p)
case("var", "far from 0", uniform((3, 17), 15, 17), axes=[1], keepdims=True, correction=0)
case("var", "one element", uniform((3, 1)), grad=False, axes=[1], keepdims=False, correction=1)
case("var", "of equals", given(*[1.5] * 6, shape=(2, 3)), axes=[1], keepdims=False, correction=0)
for name in ["sum", "prod"]:
    case(name, "empty axis", uniform((3, 0)), axes=[1], keepdims=False)
    case(name, "empty result", uniform((0, 3)), axes=[1], keepdims=False)
    case(name, "i64", ints((3, 5)), axes=[1], keepdims=False)
case("sum", "large i64", given(2**52, 1, -(2**51), 7), axes=[0], keepdims=False)
case("mean", "empty axis", uniform((3, 0)), grad=False, axes=[1], keepdims=False)
case("max", "i64", ints((3, 5)), axes=[1], keepdims=False)
case("min", "i64", ints((3, 5)), axes=[0], keepdims=True)
case("prod", "one zero", given(2.0, 0.0, 3.0, 0.5, 1.5, -1.0, shape=(2, 3)), axes=[1], keepdims=False)
case("prod", "two zeros", given(2.0, 0.0, 0.0, 0.5, 0.0, -1.0, shape=(2, 3)), axes=[1], keepdims=False)
for name in ["max", "min"]:
    case(name, "ties", given(1.0, 3.0, 3.0, 1.0, 2.0, 2.0, 2.0, 5.0, 1.0, 1.0, 5.0, 4.0, shape=(3, 4)), axes=[1], keepdims=False)
    case(name, "special", given(nan, 1.0, -inf, 2.0, inf, 1.0, -inf, -inf, shape=(4, 2)), grad=False, axes=[1], keepdims=False)
case("norm", "ties", given(1.0, -2.0, 2.0, 2.0), axes=[0], keepdims=False, p="inf")
for p in [1, 2, "inf"]:
    case("norm", f"of zeros, p {p}", given(0.0, 0.0, 0.0, 1.0, -2.0, 0.0, shape=(2, 3)), grad=p != "inf", axes=[1], keepdims=False, p=p)
case("logsumexp", "special", given(1000.0, 1000.0, -1000.0, -1001.0, -inf, 2.0, -inf, -inf, inf, 1.0, nan, 1.0, shape=(6, 2)),
     grad=False, axes=[1], keepdims=False)
case("logsumexp", "large", given(100.0, 99.0, -100.0, -101.0, shape=(2, 2)), axes=[1], keepdims=False)
case("sum", "special", given(nan, 1.0, -inf, 2.0, inf, -inf, 1.0, -1.0, shape=(4, 2)), grad=False, axes=[1], keepdims=False)
for shape, axes in extents:
    case("all", f"{list(shape)} over {axes}", bools(shape, 0.8), axes=axes, keepdims=False)
    case("any", f"{list(shape)} over {axes} kept", bools(shape, 0.2), axes=axes, keepdims=True)
for name in ["all", "any"]:
    case(name, "empty axis", bools((3, 0)), axes=[1], keepdims=False)
for name in ["argmax", "argmin"]:
    for shape, axis in [((7,), 0), ((2, 3, 5), 1), ((2, 3, 5), -1), ((5, 1), 1), ((13, 3), 0)]:
        case(name, f"{list(shape)} of {axis}", uniform(shape), axis=axis)
    case(name, "i64", ints((3, 7)), axis=1)
    case(name, "long row", coarse((2, 499)), axis=1)
    case(name, "ties", given(1.0, 3.0, 3.0, 1.0, 2.0, 2.0, 2.0, 5.0, 1.0, 1.0, 5.0, 4.0, shape=(3, 4)), axis=1)
    case(name, "special", given(nan, 1.0, 2.0, 3.0, nan, nan, inf, -inf, 0.0, shape=(3, 3)), axis=1, grad=False)

group("rows")


@op
def cumsum(x, axis):
    return torch.cumsum(x, axis)


@op
def softmax(x, axis):
    return torch.softmax(x, axis)


@op
def log_softmax(x, axis):
    return torch.log_softmax(x, axis)


for name in ["cumsum", "softmax", "log_softmax"]:
    for shape, axis in [((7,), 0), ((2, 3, 5), 0), ((2, 3, 5), 1), ((2, 3, 5), -1), ((3, 1), 1), ((0, 3), 1), ((2, 1, 3, 2, 2), 2)]:
        case(name, f"{list(shape)} along {axis}", uniform(shape), axis=axis)
    case(name, "long row", coarse((2, 257)), axis=1)
for name in ["softmax", "log_softmax"]:
    case(name, "large", given(1000.0, 999.0, 0.0, -1000.0, -999.5, -1001.0, shape=(2, 3)), axis=1)
    case(name, "special", given(1.0, nan, 2.0, 1.0, -inf, 0.5, shape=(2, 3)), grad=False, axis=1)
case("cumsum", "i64", ints((3, 5)), axis=1)
case("cumsum", "empty axis", uniform((3, 0)), axis=1)

group("view")


@op
def permute(x, order):
    return x.permute(order)


@op
def transpose(x, a, b):
    return x.transpose(a, b)


@op
def reshape(x, shape):
    return x.reshape(shape)


@op
def flip(x, axes):
    return x.flip(axes)


@op
def expand(x, shape):
    return x.expand(shape)


@op
def squeeze(x, axes):
    for a in sorted((a % x.dim() for a in all_axes(x, axes)), reverse=True):
        x = x.squeeze(a)
    return x


@op
def unsqueeze(x, axis):
    return x.unsqueeze(axis)


@op
def slice_(x, ranges):
    for axis, r in enumerate(ranges):
        x = x.index_select(axis, torch.tensor(range(x.shape[axis])[slice(*r)], dtype=torch.int64))
    return x


for shape, order in [((2, 3), [1, 0]), ((2, 3, 5), [2, 0, 1]), ((2, 3, 5), [0, 2, 1]), ((2, 1, 3, 2, 5), [4, 1, 0, 3, 2]), ((0, 3), [1, 0]), ((), [])]:
    case("permute", f"{list(shape)} to {order}", uniform(shape), order=order)
for shape, a, b in [((2, 3, 5), 0, 2), ((2, 3, 5), -1, 1), ((7,), 0, 0)]:
    case("transpose", f"{list(shape)} {a} {b}", uniform(shape), a=a, b=b)
for shape, to in [((2, 3, 5), [5, 6]), ((2, 3, 5), [-1]), ((30,), [3, -1, 2]), ((), [1, 1]), ((1,), []), ((0, 3), [3, 0, 2]), ((2, 2, 3), [2, 1, 2, 3, 1])]:
    case("reshape", f"{list(shape)} to {to}", uniform(shape), shape=to)
for shape, axes in [((7,), [0]), ((2, 3, 5), [1]), ((2, 3, 5), [0, -1]), ((2, 1, 3), [0, 1, 2])]:
    case("flip", f"{list(shape)} {axes}", uniform(shape), axes=axes)
for shape, to in [((3,), [2, 3]), ((2, 1), [2, 5]), ((), [2, 2]), ((3, 1, 2), [2, 3, 5, 2]), ((1,), [0]), ((2, 1, 3), [-1, 2, -1])]:
    case("expand", f"{list(shape)} to {to}", uniform(shape), shape=to)
for shape, axes in [((1, 3, 1), [0]), ((1, 3, 1), [-1]), ((1, 3, 1), None), ((1, 1), [0, 1]), ((2, 1, 3, 1, 2), [1, -2])]:
    case("squeeze", f"{list(shape)} {axes}", uniform(shape), axes=axes)
for shape, axis in [((), 0), ((3,), 0), ((3,), 1), ((2, 3), -1), ((2, 3), -2), ((2, 3, 2, 2), 2)]:
    case("unsqueeze", f"{list(shape)} {axis}", uniform(shape), axis=axis)
for shape, ranges in [((7,), [[1, 5, 1]]), ((7,), [[None, None, 2]]), ((7,), [[1, None, 3]]), ((7,), [[-4, -1, 1]]), ((7,), [[5, 2, 1]]),
                      ((7,), [[None, 100, 1]]), ((7,), [[None, None, -1]]), ((7,), [[5, 0, -2]]), ((3, 5), [[1, 2, 1]]),
                      ((3, 5), [[None, None, 1], [1, 4, 2]]), ((2, 3, 5), [[1, None, 1], [None, None, 2], [None, 3, 1]]),
                      ((2, 2, 3, 2, 3), [[0, 1, 1], [None, None, None], [None, None, 2], [1, None, 1], [None, 2, 1]])]:
    case("slice", f"{list(shape)} {ranges}", uniform(shape), ranges=ranges)
case("slice", "i64", ints((3, 5)), ranges=[[1, None, 1], [None, None, 2]])
case("permute", "bools", bools((3, 5)), order=[1, 0])

# Products

group("product")


@op
def matmul(a, b, transpose_a=False, transpose_b=False):
    a = a.transpose(-1, -2) if transpose_a else a
    b = b.transpose(-1, -2) if transpose_b else b
    return torch.matmul(a, b)


@op
def einsum(*xs, spec):
    return torch.einsum(spec, *xs)


for a, b in [((5,), (5,)), ((5,), (5, 3)), ((3, 5), (5,)), ((3, 5), (5, 2)), ((1, 7), (7, 1)), ((3, 1), (1, 5)), ((2, 3, 5), (2, 5, 3)),
             ((2, 3, 5), (5, 2)), ((3, 5), (2, 5, 2)), ((2, 1, 3, 2), (3, 2, 5)), ((5,), (2, 5, 3)), ((2, 3, 5), (5,)), ((3, 0), (0, 2)),
             ((0, 3), (3, 2)), ((2, 1, 2, 3, 2), (1, 3, 1, 2, 2)), ((17, 13), (13, 19))]:
    case("matmul", f"{list(a)} {list(b)}", uniform(a), uniform(b), transpose_a=False, transpose_b=False)
for a, b, ta, tb in [((5, 3), (5, 2), True, False), ((3, 5), (2, 5), False, True), ((5, 3), (2, 5), True, True), ((2, 5, 3), (2, 2, 5), True, True),
                     ((2, 5, 3), (5, 2), True, False), ((3, 5), (2, 2, 5), False, True), ((5, 3), (5,), True, False), ((11, 17), (11, 13), True, False)]:
    case("matmul", f"{list(a)}{' transposed' if ta else ''} {list(b)}{' transposed' if tb else ''}", uniform(a), uniform(b), transpose_a=ta, transpose_b=tb)
case("matmul", "i64", ints((3, 5)), ints((5, 2)), transpose_a=False, transpose_b=False)
case("matmul", "long rows", coarse((3, 257)), coarse((257, 2)), transpose_a=False, transpose_b=False)
for spec, *shapes in [("ij,jk->ik", (3, 5), (5, 2)), ("ij,jk", (3, 5), (5, 2)), ("ij,kj->ki", (3, 5), (2, 5)), ("bij,bjk->bik", (2, 3, 5), (2, 5, 2)),
                      ("ij->ji", (3, 5)), ("ij->", (3, 5)), ("ijk->ki", (2, 3, 5)), ("i,j->ij", (3,), (5,)), ("i,i->", (7,), (7,)), ("ij,ij->ij", (3, 5), (3, 5)),
                      ("ij,ij->", (3, 5), (3, 5)), ("bqhd,bkhd->bhqk", (2, 3, 2, 5), (2, 2, 2, 5)), ("bhqk,bkhd->bqhd", (2, 2, 3, 2), (2, 2, 2, 5)),
                      ("ij,jk,kl->il", (2, 3), (3, 5), (5, 2)), ("...ij,...jk->...ik", (2, 1, 3, 2), (3, 2, 5)), ("b...,b...->b", (3, 2, 5), (3, 2, 5)),
                      ("ijk,jl->ikl", (2, 3, 5), (3, 2)), ("ij,k->jk", (3, 5), (2,)), ("ii->i", (5, 5)), ("ii->", (5, 5)), ("ij,jj->i", (3, 5), (5, 5)),
                      (",ij->ij", (), (2, 3)), ("ij,jk->ik", (3, 0), (0, 2))]:
    case("einsum", f"{spec} {[list(s) for s in shapes]}", *[uniform(s) for s in shapes], spec=spec)

# Joining and repeating

group("join")


@op
def concat(*xs, axis):
    return torch.cat(xs, axis)


@op
def stack(*xs, axis):
    return torch.stack(xs, axis)


@op
def split(x, axis, lengths):
    return torch.split(x, lengths, axis)


@op
def pad(x, mode, margins, value=0.0):
    if mode == "constant":
        return F.pad(x, [n for m in reversed(margins) for n in m], value=value)
    how = {"reflect": "reflect", "symmetric": "symmetric", "replicate": "edge", "circular": "wrap"}[mode]
    for axis, m in enumerate(margins):
        x = x.index_select(axis, torch.tensor(np.pad(np.arange(x.shape[axis]), m, how)))
    return x


@op
def tile(x, repeats):
    return torch.tile(x, repeats)


@op
def roll(x, shifts, axes):
    return torch.roll(x, shifts, axes)


for axis, *shapes in [(0, (3,), (5,)), (0, (2, 3), (1, 3), (5, 3)), (1, (2, 3), (2, 1)), (-1, (2, 3, 2), (2, 3, 5)), (1, (2, 0), (2, 3), (2, 2)), (1, (2, 2, 2), (2, 3, 2))]:
    case("concat", f"{[list(s) for s in shapes]} along {axis}", *[uniform(s) for s in shapes], axis=axis)
case("concat", "i64", ints((2, 3)), ints((1, 3)), axis=0)
for axis, n, shape in [(0, 2, (3,)), (1, 3, (2, 5)), (-1, 2, (2, 3)), (0, 2, ()), (2, 2, (2, 3, 2))]:
    case("stack", f"{n} of {list(shape)} along {axis}", *[uniform(shape)] * n, axis=axis)
for shape, axis, lengths in [((7,), 0, [2, 5]), ((2, 7), 1, [1, 4, 2]), ((5, 3), -2, [3, 2]), ((2, 3), 1, [3]), ((2, 3), 1, [0, 3]), ((2, 6, 2), 1, [2, 2, 2])]:
    case("split", f"{list(shape)} along {axis} by {lengths}", uniform(shape), axis=axis, lengths=lengths)
for shape, margins in [((3,), [[1, 2]]), ((3, 5), [[0, 0], [2, 1]]), ((3, 5), [[1, 2], [0, 3]]), ((2, 3, 5), [[0, 1], [1, 0], [2, 2]]), ((2, 1, 3, 4), [[0, 0], [0, 0], [2, 1], [1, 3]])]:
    case("pad", f"constant {list(shape)} by {margins}", uniform(shape), mode="constant", margins=margins, value=0.0)
    for mode in ["reflect", "symmetric", "replicate", "circular"]:
        case("pad", f"{mode} {list(shape)} by {margins}", uniform(shape), mode=mode, margins=margins)
case("pad", "constant 1.5", uniform((2, 3)), mode="constant", margins=[[1, 0], [0, 2]], value=1.5)
case("pad", "constant -inf", uniform((2, 3)), mode="constant", margins=[[1, 0], [0, 2]], value=-inf, grad=False)
case("pad", "constant, empty", uniform((0, 3)), mode="constant", margins=[[1, 1], [0, 1]], value=2.0)
case("pad", "constant i64", ints((2, 3)), mode="constant", margins=[[0, 1], [1, 0]], value=7)
for shape, repeats in [((3,), [2]), ((3,), [2, 2]), ((2, 3), [2, 1]), ((2, 3), [3]), ((2, 1, 2), [1, 3, 2]), ((2, 3), [0, 1]), ((), [3])]:
    case("tile", f"{list(shape)} by {repeats}", uniform(shape), repeats=repeats)
for shape, shifts, axes in [((7,), [2], [0]), ((7,), [-3], [0]), ((3, 5), [1, -1], [0, 1]), ((3, 5), [7], [-1]), ((2, 3, 5), [1, 2], [2, 0]), ((3, 0), [1], [0])]:
    case("roll", f"{list(shape)} by {shifts} along {axes}", uniform(shape), shifts=shifts, axes=axes)

group("matrix")


@op
def repeat(x, axis, n):
    return x.repeat_interleave(n, axis)


@op
def tril(x, k):
    return torch.tril(x, k)


@op
def triu(x, k):
    return torch.triu(x, k)


@op
def diagonal(x, k):
    return torch.diagonal(x, k, -2, -1)


@op
def diag(x):
    return torch.diag_embed(x)


for shape, axis, n in [((3,), 0, 2), ((2, 3), 1, 3), ((2, 3, 2), -2, 2), ((2, 3), 0, 1), ((2, 3), 1, 0)]:
    case("repeat", f"{list(shape)} along {axis} {n} times", uniform(shape), axis=axis, n=n)
for k in [0, 1, -2, 7]:
    for name in ["tril", "triu"]:
        for shape in [(3, 5), (2, 5, 3)]:
            case(name, f"{list(shape)} {k}", uniform(shape), k=k)
for k in [0, 1, -2]:
    for shape in [(3, 5), (2, 5, 3), (4, 4)]:
        case("diagonal", f"{list(shape)} {k}", uniform(shape), k=k)
for shape in [(3,), (2, 3), (2, 1, 2), (1,)]:
    case("diag", f"{list(shape)}", uniform(shape))

# Indices

group("index")


def wrapped(index, n):
    """Indices from 0 on, and whether they name an element."""
    i = torch.where(index < 0, index + n, index)
    good = (i >= 0) & (i < n)
    return torch.where(good, i, torch.zeros_like(i)), good


@op
def take(x, index, axis):
    axis %= x.dim()
    i, good = wrapped(index, x.shape[axis])
    y = x.index_select(axis, i.reshape(-1))
    mask = good.reshape([-1] + [1] * (x.dim() - axis - 1))
    y = torch.where(mask, y, torch.zeros((), dtype=x.dtype))
    return y.reshape(x.shape[:axis] + index.shape + x.shape[axis + 1 :])


@op
def take_along(x, index, axis):
    i, good = wrapped(index, x.shape[axis])
    y = torch.take_along_dim(x, i, axis)
    return torch.where(good, y, torch.zeros((), dtype=x.dtype))


@op
def embedding(weights, index):
    return F.embedding(index, weights)


@op
def scatter_add(x, index, src, axis):
    i, good = wrapped(index, x.shape[axis])
    return x.scatter_add(axis, i, torch.where(good, src, torch.zeros((), dtype=x.dtype)))


@op
def scatter(x, index, src, axis):
    return x.scatter(axis, wrapped(index, x.shape[axis])[0], src)


@op
def index_add(x, index, src, axis):
    return x.index_add(axis, wrapped(index, x.shape[axis])[0], src)


@op
def index_set(x, index, src, axis):
    return x.index_copy(axis, wrapped(index, x.shape[axis])[0], src)


@op
def one_hot(index, n):
    return (index.unsqueeze(-1) == torch.arange(n)).to(torch.float64)


for shape, axis, index in [((7,), 0, (5,)), ((3, 5), 0, (4,)), ((3, 5), 1, (2, 3)), ((2, 3, 5), -1, (2,)), ((2, 3, 2), 1, ()), ((3, 5), 0, (0,)), ((3, 0), 0, (2,)), ((2, 3, 2, 2), 1, (2, 2))]:
    n = shape[axis]
    case("take", f"{list(shape)} along {axis} at {list(index)}", uniform(shape), ints(index, 0, n), axis=axis)
case("take", "negative", uniform((5, 3)), given(-1, 0, -5, 4, -1), axis=0)
case("take", "beyond", uniform((5, 3)), given(5, 0, -6, 100), axis=0)
case("take", "i64", ints((5, 3)), given(1, 4, 1), axis=0)
for shape, axis, index in [((7,), 0, (5,)), ((3, 5), 0, (4, 5)), ((3, 5), 1, (3, 2)), ((2, 3, 5), -1, (2, 3, 1)), ((2, 3, 5), 1, (1, 2, 1)), ((3, 5), 1, (1, 3)), ((1, 5), 1, (3, 2))]:
    case("take_along", f"{list(shape)} along {axis} at {list(index)}", uniform(shape), ints(index, 0, shape[axis]), axis=axis)
case("take_along", "negative and beyond", uniform((2, 3)), given(-1, 3, 0, -4, -3, 2, shape=(2, 3)), axis=1)
for n, width, index in [(7, 3, (5,)), (5, 2, (2, 3)), (3, 1, ()), (4, 2, (2, 1, 2))]:
    case("embedding", f"[{n}, {width}] at {list(index)}", uniform((n, width)), ints(index, 0, n))
for shape, axis, index in [((7,), 0, (5,)), ((3, 5), 0, (4, 5)), ((3, 5), 1, (3, 7)), ((2, 3, 5), -1, (2, 3, 2)), ((2, 3, 2), 1, (2, 7, 2)), ((3, 5), 0, (0, 5))]:
    case("scatter_add", f"{list(shape)} along {axis} at {list(index)}", uniform(shape), ints(index, 0, shape[axis]), uniform(index), axis=axis)
case("scatter_add", "one place", uniform((3,)), given(1, 1, 1, 1, 1), uniform((5,)), axis=0)
case("scatter_add", "negative and beyond", uniform((4,)), given(-1, 4, 0, -5, -4, 2), uniform((6,)), axis=0)
case("scatter_add", "i64", ints((3, 5)), ints((3, 4), 0, 5), ints((3, 4)), axis=1)
for shape, axis, index in [((7,), 0, (5,)), ((3, 5), 0, (2, 5)), ((3, 5), 1, (3, 4)), ((2, 3, 5), -1, (2, 3, 2))]:
    case("scatter", f"{list(shape)} along {axis} at {list(index)}", uniform(shape), different(index, shape[axis], axis), uniform(index), axis=axis)
for shape, axis, k in [((7,), 0, 9), ((3, 5), 0, 4), ((3, 5), 1, 2), ((2, 3, 2), 1, 5)]:
    src = shape[:axis] + (k,) + shape[axis + 1 :]
    case("index_add", f"{list(shape)} along {axis} at {k}", uniform(shape), ints((k,), 0, shape[axis]), uniform(src), axis=axis)
case("index_add", "negative", uniform((3, 2)), given(-1, 0, -3), uniform((3, 2)), axis=0)
for shape, axis, k in [((7,), 0, 5), ((3, 5), 0, 2), ((3, 5), 1, 3), ((2, 3, 2), -2, 2)]:
    src = list(shape)
    src[axis] = k
    case("index_set", f"{list(shape)} along {axis} at {k}", uniform(shape), different((k,), shape[axis], 0), uniform(tuple(src)), axis=axis)
for shape, n in [((5,), 3), ((2, 3), 5), ((), 4)]:
    case("one_hot", f"{list(shape)} of {n}", ints(shape, 0, n), n=n)
case("one_hot", "beyond", given(-1, 0, 3, 2), n=3)

# Order

group("order")


def order(x, axis, descending):
    a = x.detach().numpy()
    if not descending:
        return torch.tensor(np.argsort(a, axis, kind="stable"))
    n = a.shape[axis]  # the last of the reversed ones comes first among equals, and NaN is last, which is first from behind
    back = np.flip(np.argsort(np.flip(a, axis), axis, kind="stable"), axis)
    return torch.tensor(n - 1 - back)


@op
def sort(x, axis, descending):
    i = order(x, axis, descending)
    return torch.gather(x, axis, i), i


@op
def argsort(x, axis, descending):
    return order(x, axis, descending)


@op
def topk(x, k, axis, largest):
    i = order(x, axis, largest).narrow(axis, 0, k)
    return torch.gather(x, axis, i), i


for descending in [False, True]:
    way = "down" if descending else "up"
    for shape, axis in [((7,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 3, 5), 1), ((2, 3, 5), -1), ((3, 1), 1), ((0, 3), 1)]:
        case("sort", f"{list(shape)} along {axis} {way}", uniform(shape), axis=axis, descending=descending)
    case("sort", f"long row {way}", coarse((2, 301)), axis=1, descending=descending)
    case("sort", f"ties {way}", halves((2, 17)), axis=1, descending=descending)
    case("sort", f"special {way}", given(nan, 1.0, -inf, 0.0, inf, nan, -0.0, 1.0, -2.0), grad=False, axis=0, descending=descending)
    case("sort", f"i64 {way}", ints((3, 7)), axis=1, descending=descending)
    case("argsort", f"[3, 5] along 1 {way}", uniform((3, 5)), axis=1, descending=descending)
    case("argsort", f"[3, 5] along 0 {way}", uniform((3, 5)), axis=0, descending=descending)
    case("argsort", f"ties {way}", halves((2, 17)), axis=1, descending=descending)
for largest in [True, False]:
    way = "largest" if largest else "smallest"
    for shape, k, axis in [((7,), 3, 0), ((3, 5), 2, 1), ((3, 5), 2, 0), ((2, 5, 3), 5, 1), ((2, 3, 5), 1, -1)]:
        case("topk", f"{k} {way} of {list(shape)} along {axis}", uniform(shape), k=k, axis=axis, largest=largest)
    case("topk", f"ties, {way}", halves((2, 17)), k=5, axis=1, largest=largest)

# Normalization

group("normalization")


@op
def layer_norm(x, gamma, beta, eps):
    return F.layer_norm(x, gamma.shape, gamma, beta, eps)


@op
def rms_norm(x, gamma, eps):
    axes = list(range(x.dim() - gamma.dim(), x.dim()))
    return x / torch.sqrt((x * x).mean(axes, keepdim=True) + eps) * gamma


@op
def batch_norm(x, gamma, beta, eps):
    return F.batch_norm(x, None, None, gamma, beta, True, 0, eps)


@op
def batch_norm_inference(x, gamma, beta, mean, variance, eps):
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = (x - mean.reshape(shape)) / torch.sqrt(variance.reshape(shape) + eps)
    return y * gamma.reshape(shape) + beta.reshape(shape)


@op
def group_norm(x, gamma, beta, groups, eps):
    return F.group_norm(x, groups, gamma, beta, eps)


for shape, width in [((7,), 1), ((3, 5), 1), ((2, 3, 7), 1), ((2, 3, 5), 2), ((5, 1), 1), ((0, 3), 1), ((2, 1, 3, 2, 3), 3)]:
    for name in ["layer_norm", "rms_norm"]:
        parts = [uniform(shape[-width:], 0.5, 1.5)] + ([uniform(shape[-width:])] if name == "layer_norm" else [])
        # Of one element the gradient by x is 0 but for eps, and of no use.
        case(name, f"{list(shape)} over {width}", uniform(shape), *parts, grad=shape != (5, 1), eps=1e-5)
for name in ["layer_norm", "rms_norm"]:
    parts = [uniform((5,), 0.5, 1.5)] + ([uniform((5,))] if name == "layer_norm" else [])
    case(name, "small numbers", uniform((3, 5), -0.01, 0.01), *parts, eps=1e-5)
    case(name, "eps 0.1", uniform((3, 5)), *parts, eps=0.1)
case("layer_norm", "far from 0", uniform((2, 11), 15, 17), uniform((11,), 0.5, 1.5), uniform((11,)), eps=1e-5)
for shape in [(5, 3), (2, 3, 5), (2, 3, 2, 5), (2, 2, 2, 3, 2)]:
    c = (shape[1],)
    case("batch_norm", f"{list(shape)}", uniform(shape), uniform(c, 0.5, 1.5), uniform(c), eps=1e-5)
    case("batch_norm_inference", f"{list(shape)}", uniform(shape), uniform(c, 0.5, 1.5), uniform(c), uniform(c), uniform(c, 0.2, 2), eps=1e-5)
for shape, groups in [((2, 6, 3), 2), ((2, 6, 2, 3), 3), ((2, 4, 7), 4), ((3, 10), 2), ((2, 3, 5), 1)]:
    c = (shape[1],)
    case("group_norm", f"{list(shape)} in {groups}", uniform(shape), uniform(c, 0.5, 1.5), uniform(c), groups=groups, eps=1e-5)

# Convolution and pooling

group("convolution")


for name in ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"]:
    ops[name] = lambda x, w, b=None, f=getattr(F, name), **attrs: f(x, w, b, **attrs)

for shape, w, stride, padding, dilation, groups, bias in [
    ((2, 3, 7), (5, 3, 3), 1, 0, 1, 1, True), ((1, 2, 11), (3, 2, 3), 2, 1, 1, 1, True), ((1, 2, 11), (2, 2, 3), 1, 2, 2, 1, False),
    ((2, 4, 7), (6, 2, 2), 1, 0, 1, 2, True), ((1, 3, 5), (3, 1, 5), 1, 2, 1, 3, False), ((1, 1, 1), (2, 1, 1), 1, 0, 1, 1, True),
]:
    case("conv1d", f"{list(shape)} {list(w)} stride {stride} padding {padding} dilation {dilation} groups {groups}{' bias' if bias else ''}",
         uniform(shape), uniform(w), *([uniform((w[0],))] if bias else []), stride=[stride], padding=[padding], dilation=[dilation], groups=groups)
for shape, w, stride, padding, dilation, groups, bias in [
    ((1, 1, 5, 5), (1, 1, 3, 3), [1, 1], [0, 0], [1, 1], 1, False), ((2, 3, 5, 7), (2, 3, 3, 2), [1, 1], [1, 1], [1, 1], 1, True),
    ((1, 2, 7, 6), (3, 2, 3, 3), [2, 2], [1, 1], [1, 1], 1, True), ((1, 2, 7, 5), (2, 2, 2, 3), [2, 1], [0, 2], [1, 1], 1, False),
    ((1, 2, 7, 7), (2, 2, 3, 3), [1, 1], [2, 2], [2, 2], 1, True), ((2, 4, 4, 3), (4, 2, 2, 2), [1, 1], [0, 0], [1, 1], 2, True),
    ((1, 3, 5, 5), (6, 1, 3, 3), [1, 1], [1, 1], [1, 1], 3, False), ((2, 3, 3, 4), (5, 3, 1, 1), [1, 1], [0, 0], [1, 1], 1, True),
    ((1, 1, 6, 5), (2, 1, 2, 2), [3, 2], [1, 0], [2, 3], 1, True),
]:
    case("conv2d", f"{list(shape)} {list(w)} stride {stride} padding {padding} dilation {dilation} groups {groups}{' bias' if bias else ''}",
         uniform(shape), uniform(w), *([uniform((w[0],))] if bias else []), stride=stride, padding=padding, dilation=dilation, groups=groups)
for shape, w, stride, padding, dilation, groups, bias in [
    ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), [1, 1, 1], [0, 0, 0], [1, 1, 1], 1, True), ((1, 1, 3, 4, 5), (2, 1, 2, 3, 2), [1, 2, 2], [1, 1, 0], [1, 1, 2], 1, False),
    ((2, 2, 2, 3, 2), (2, 1, 2, 1, 2), [1, 1, 1], [0, 0, 1], [1, 1, 1], 2, True),
]:
    case("conv3d", f"{list(shape)} {list(w)} stride {stride} padding {padding} dilation {dilation} groups {groups}{' bias' if bias else ''}",
         uniform(shape), uniform(w), *([uniform((w[0],))] if bias else []), stride=stride, padding=padding, dilation=dilation, groups=groups)
for shape, w, stride, padding, extra, dilation, groups, bias in [
    ((1, 2, 3, 4), (2, 3, 3, 2), [1, 1], [0, 0], [0, 0], [1, 1], 1, True), ((2, 2, 3, 3), (2, 2, 3, 3), [2, 2], [1, 1], [0, 0], [1, 1], 1, False),
    ((1, 2, 3, 3), (2, 1, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1], 1, True), ((1, 4, 3, 2), (4, 2, 2, 2), [2, 1], [0, 1], [1, 0], [1, 1], 2, True),
    ((1, 1, 3, 3), (1, 2, 2, 3), [1, 2], [0, 0], [0, 0], [2, 2], 1, True),
]:
    case("conv_transpose2d", f"{list(shape)} {list(w)} stride {stride} padding {padding} more {extra} dilation {dilation} groups {groups}{' bias' if bias else ''}",
         uniform(shape), uniform(w), *([uniform((w[1] * groups,))] if bias else []), stride=stride, padding=padding, output_padding=extra, dilation=dilation, groups=groups)
for shape, w, stride, padding, extra in [((2, 2, 5), (2, 3, 3), 1, 0, 0), ((1, 3, 4), (3, 2, 4), 2, 1, 1)]:
    case("conv_transpose1d", f"{list(shape)} {list(w)} stride {stride} padding {padding} more {extra}", uniform(shape), uniform(w), uniform((w[1],)),
         stride=[stride], padding=[padding], output_padding=[extra], dilation=[1], groups=1)

group("pooling")

for name in ["max_pool1d", "max_pool2d", "max_pool3d"]:
    ops[name] = lambda x, kernel, stride, padding, f=getattr(F, name): f(x, kernel, stride, padding)
for name in ["avg_pool1d", "avg_pool2d", "avg_pool3d"]:
    ops[name] = lambda x, kernel, stride, padding, f=getattr(F, name): f(x, kernel, stride, padding, count_include_pad=False)


@op
def global_max_pool(x):
    return torch.amax(x, list(range(2, x.dim())), True)


@op
def global_avg_pool(x):
    return torch.mean(x, list(range(2, x.dim())), True)


for name in ["max_pool", "avg_pool"]:
    for shape, kernel, stride, padding in [
        ((2, 3, 11), [2], [2], [0]), ((1, 2, 11), [3], [2], [1]),
        ((1, 1, 4, 4), [2, 2], [2, 2], [0, 0]), ((2, 3, 5, 7), [2, 3], [2, 2], [0, 1]), ((1, 2, 7, 5), [3, 3], [1, 1], [1, 1]), ((1, 2, 5, 6), [3, 2], [2, 3], [1, 1]),
        ((1, 1, 5, 5), [1, 1], [2, 2], [0, 0]), ((1, 2, 3, 2), [3, 2], [1, 1], [0, 0]),
        ((1, 2, 4, 3, 5), [2, 2, 2], [2, 1, 2], [0, 0, 1]),
    ]:
        case(f"{name}{len(kernel)}d", f"{list(shape)} kernel {kernel} stride {stride} padding {padding}", uniform(shape), kernel=kernel, stride=stride, padding=padding)
case("max_pool2d", "ties", given(1.0, 1.0, 0.0, 2.0, 1.0, 1.0, 2.0, 2.0, 0.0, 3.0, 0.0, 0.0, 3.0, 3.0, 0.0, 0.0, shape=(1, 1, 4, 4)), kernel=[2, 2], stride=[2, 2], padding=[0, 0])
case("max_pool2d", "negative numbers", uniform((1, 1, 3, 3), -3, -1), kernel=[2, 2], stride=[1, 1], padding=[1, 1])
for shape in [(2, 3, 5), (2, 3, 2, 5), (1, 2, 2, 3, 2)]:
    case("global_max_pool", f"{list(shape)}", uniform(shape))
    case("global_avg_pool", f"{list(shape)}", uniform(shape))

# Attention

group("attention")


@op
def attention(q, k, v, mask=None, *, causal, offset, scale):
    repeats = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
    s = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    sees = torch.ones(s.shape[-2:], dtype=torch.bool) if mask is None else mask
    if causal:
        sees = sees & (torch.arange(s.shape[-1]) <= torch.arange(s.shape[-2]).unsqueeze(-1) + offset)
    sees = sees.expand(s.shape)
    something = sees.any(-1, keepdim=True)
    s = s.masked_fill(~sees & something, -inf)
    return torch.softmax(s, -1) * something @ v


for variant, b, heads, kv, queries, keys, width, out, mask, causal, offset, scale in [
    ("plain", 1, 1, 1, 3, 5, 2, 2, None, False, 0, None), ("heads", 2, 2, 2, 3, 2, 4, 3, None, False, 0, None),
    ("grouped queries", 1, 4, 2, 3, 5, 3, 3, None, False, 0, None), ("one head of keys", 2, 3, 1, 2, 3, 2, 2, None, False, 0, None),
    ("causal", 1, 2, 2, 5, 5, 3, 3, None, True, 0, None), ("causal, more keys", 1, 2, 1, 3, 7, 2, 2, None, True, 4, None),
    ("causal, more keys, from the first", 1, 1, 1, 3, 7, 2, 2, None, True, 0, None), ("causal, more queries", 1, 1, 1, 5, 3, 2, 2, None, True, -2, None),
    ("mask", 2, 2, 2, 3, 5, 2, 2, (2, 2, 3, 5), False, 0, None), ("mask of a batch", 2, 2, 2, 3, 5, 2, 2, (2, 1, 1, 5), False, 0, None),
    ("mask of all", 2, 2, 1, 3, 5, 2, 2, (3, 5), False, 0, None), ("mask and causal", 1, 2, 1, 5, 5, 2, 3, (1, 1, 5, 5), True, 0, None),
    ("scale", 1, 1, 1, 3, 5, 2, 2, None, False, 0, 0.3), ("one query", 1, 4, 2, 1, 7, 4, 4, None, True, 6, None),
]:
    case("attention", variant, uniform((b, heads, queries, width)), uniform((b, kv, keys, width)), uniform((b, kv, keys, out)),
         *([bools(mask, 0.7)] if mask else []), causal=causal, offset=offset, scale=scale)
case("attention", "row masked wholly", uniform((1, 1, 3, 2)), uniform((1, 1, 4, 2)), uniform((1, 1, 4, 2)),
     given(True, False, True, True, False, False, False, False, False, True, False, False, shape=(3, 4)), causal=False, offset=0, scale=None)
case("attention", "large scores", away((1, 1, 3, 2), 20, 40), away((1, 1, 4, 2), 20, 40), uniform((1, 1, 4, 2)), grad=False, causal=False, offset=0, scale=None)

# Losses

group("loss")


def clipped(p):
    return p.clamp(1e-15, 1 - 1e-15)


def smoothed(t, smoothing):
    return t * (1 - smoothing) + smoothing / t.shape[-1]


@op
def loss_mse(p, t):
    return ((p - t) ** 2).mean()


@op
def loss_mae(p, t):
    return (p - t).abs().mean()


@op
def loss_bce(p, t):
    p = clipped(p)
    return -(t * p.log() + (1 - t) * (1 - p).log()).mean()


@op
def loss_cce(p, t):
    return -(t * clipped(p).log()).sum(-1).mean()


@op
def loss_sparse_cce(p, labels):
    return loss_cce(p, F.one_hot(labels, p.shape[-1]).double())


@op
def loss_softmax_cce(z, t, smoothing):
    return -(smoothed(t, smoothing) * torch.log_softmax(z, -1)).sum(-1).mean()


@op
def loss_sparse_softmax_cce(z, labels, smoothing):
    return loss_softmax_cce(z, F.one_hot(labels, z.shape[-1]).double(), smoothing)


@op
def loss_sigmoid_bce(z, t):
    return (softplus(z) - t * z).mean()


@op
def loss_huber(p, t, delta):
    d = (p - t).abs()
    return torch.where(d <= delta, d * d / 2, delta * (d - delta / 2)).mean()


@op
def loss_hinge(p, t):
    return (1 - t * p).clamp(min=0).mean()


@op
def loss_squared_hinge(p, t):
    return ((1 - t * p).clamp(min=0) ** 2).mean()


@op
def loss_kl(p, t):
    p, t = p.clamp(min=1e-15), t.clamp(min=1e-15)
    return (t * (t / p).log()).mean()


@op
def loss_poisson(p, t):
    return (p - t * p.log()).mean()


@op
def loss_cosine(p, t):
    squares = (p * p).sum(-1) * (t * t).sum(-1)
    some = squares > 0
    cos = (p * t).sum(-1) / torch.where(some, squares, torch.ones_like(squares)).sqrt()
    return (1 - torch.where(some, cos, torch.zeros_like(cos))).mean()


@op
def loss_log_cosh(p, t):
    d = (p - t).abs()
    return (d + torch.log1p(torch.exp(-2 * d)) - math.log(2)).mean()


@op
def loss_quantile(p, t, q):
    d = t - p
    return torch.where(d >= 0, q * d, (q - 1) * d).mean()


probability = lambda shape: uniform(shape, 0.05, 0.95)
count = lambda shape: uniform(shape, 0.2, 4)
for name, left, right, attrs in [
    ("loss_mse", uniform, uniform, {}), ("loss_mae", uniform, uniform, {}), ("loss_bce", probability, probability, {}), ("loss_cce", rows, rows, {}),
    ("loss_softmax_cce", uniform, rows, {"smoothing": 0}), ("loss_softmax_cce", uniform, rows, {"smoothing": 0.1}), ("loss_sigmoid_bce", uniform, probability, {}),
    ("loss_huber", uniform, uniform, {"delta": 1}), ("loss_huber", uniform, uniform, {"delta": 0.3}), ("loss_hinge", uniform, signs, {}),
    ("loss_squared_hinge", uniform, signs, {}), ("loss_kl", rows, rows, {}), ("loss_poisson", count, count, {}), ("loss_cosine", uniform, uniform, {}),
    ("loss_log_cosh", uniform, uniform, {}), ("loss_quantile", uniform, uniform, {"q": 0.5}), ("loss_quantile", uniform, uniform, {"q": 0.9}),
]:
    for shape in [(7,), (3, 5), (2, 3, 4)]:
        case(name, " ".join([f"{list(shape)}"] + [f"{k} {v}" for k, v in attrs.items()]), left(shape), right(shape), **attrs)
for shape in [(1, 3), (5, 7)]:
    labels = ints(shape[:1], 0, shape[1])
    case("loss_sparse_cce", f"{list(shape)}", rows(shape), labels)
    case("loss_sparse_softmax_cce", f"{list(shape)}", uniform(shape), labels, smoothing=0)
    case("loss_sparse_softmax_cce", f"{list(shape)} smoothing 0.1", uniform(shape), labels, smoothing=0.1)
case("loss_bce", "clipped", given(0.0, 1.0, 1.0, 0.0), given(0.0, 1.0, 0.0, 1.0), grad=False, only="f64")
case("loss_cce", "clipped", given(0.0, 1.0, 1.0, 0.0, shape=(2, 2)), given(0.0, 1.0, 0.0, 1.0, shape=(2, 2)), grad=False, only="f64")
case("loss_kl", "clipped", given(0.0, 1.0, 0.5, 0.5), given(0.5, 0.0, 0.0, 0.5), grad=False, only="f64")
case("loss_softmax_cce", "large", given(900.0, -900.0, 0.0, -500.0, 500.0, 499.0, shape=(2, 3)), given(1.0, 0.0, 0.0, 0.0, 0.0, 1.0, shape=(2, 3)), smoothing=0)
case("loss_sigmoid_bce", "large", given(80.0, -80.0, 80.0, -80.0), given(1.0, 0.0, 0.0, 1.0))
case("loss_log_cosh", "large", given(80.0, -80.0, 0.5), given(0.0, 10.0, 0.25))
case("loss_cosine", "zero norm", given(0.0, 0.0, 1.0, 2.0, 1.0, -1.0, shape=(3, 2)), given(1.0, 1.0, 0.0, 0.0, 2.0, 1.0, shape=(3, 2)))
case("loss_mae", "ties", given(1.0, 2.0, 3.0), given(1.0, 3.0, 2.0))

# Layers

group("layer")

activation = {
    "linear": lambda x: x, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.01), "elu": F.elu,
    "swish": F.silu, "gelu": ops["gelu_tanh"], "gelu_erf": F.gelu, "softplus": softplus, "mish": ops["mish"], "hard_sigmoid": ops["hard_sigmoid"],
    "hard_tanh": F.hardtanh, "softmax": lambda x: torch.softmax(x, -1), "log_softmax": lambda x: torch.log_softmax(x, -1),
    "swiglu": lambda x: F.silu(x[..., : x.shape[-1] // 2]) * x[..., x.shape[-1] // 2 :],
}


@op
def layer_activation(x, name):
    return activation[name](x)


@op
def layer_prelu(x, slope):
    return F.prelu(x, slope)


@op
def layer_dense(x, w, b, act):
    return activation[act](F.linear(x, w.T, b))


@op
def layer_conv(x, w, b, stride, padding, dilation, groups):
    f = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.dim()]
    return f(x, w, b, stride, "same" if padding is None else padding, dilation, groups)


@op
def layer_batch_norm(x, gamma, beta, mean, variance):
    m, v = mean.detach().clone(), variance.detach().clone()
    y = F.batch_norm(x, m, v, gamma, beta, True, 0.1, 1e-5)
    return y, mean * 0.9 + (m - mean.detach() * 0.9), variance * 0.9 + (v - variance.detach() * 0.9)


@op
def layer_batch_norm_inference(x, gamma, beta, mean, variance):
    return batch_norm_inference(x, gamma, beta, mean, variance, 1e-5)


@op
def layer_embedding(w, index):
    return F.embedding(index, w)


def recurrent(x, u, lengths, sequences, cell, states):
    """Goes through the steps by cell, a function of x of a step, what it is multiplied by u for, and the states."""
    out = []
    for t in range(x.shape[1]):
        after = cell(x[:, t], states[0] @ u, *states)
        if lengths is not None:
            goes = (lengths > t).unsqueeze(1)
            out.append(torch.where(goes, after[0], torch.zeros_like(after[0])))
            after = [torch.where(goes, a, s) for a, s in zip(after, states)]
        else:
            out.append(after[0])
        states = after
    return torch.stack(out, 1) if sequences else states[0]


def ours_and_torch(ours, run, sequences, lengths):
    """Demands that PyTorch's own layer has the same results, where it has the variant."""
    if lengths is None:
        all_, last = run()
        assert torch.allclose(ours, all_ if sequences else last[0], rtol=1e-12, atol=1e-12)
    return ours


@op
def layer_rnn(x, w, u, b, lengths=None, *, sequences):
    h = torch.zeros(x.shape[0], u.shape[0], dtype=x.dtype)
    ours = recurrent(x @ w + b, u, lengths, sequences, lambda x, hu, h: [torch.tanh(x + hu)], [h])
    return ours_and_torch(ours, lambda: torch._VF.rnn_tanh(x, h[None], [w.T, u.T, b, b * 0], True, 1, 0.0, False, False, True), sequences, lengths)


@op
def layer_gru(x, w, u, b, bn, lengths=None, *, sequences):
    n = u.shape[0]
    h = torch.zeros(x.shape[0], n, dtype=x.dtype)

    def cell(x, hu, h):
        r, z = torch.sigmoid(x[:, :n] + hu[:, :n]), torch.sigmoid(x[:, n : 2 * n] + hu[:, n : 2 * n])
        new = torch.tanh(x[:, 2 * n :] + r * (hu[:, 2 * n :] + bn))
        return [(1 - z) * new + z * h]

    ours = recurrent(x @ w + b, u, lengths, sequences, cell, [h])
    rb = torch.cat([bn * 0, bn * 0, bn])
    return ours_and_torch(ours, lambda: torch._VF.gru(x, h[None], [w.T, u.T, b, rb], True, 1, 0.0, False, False, True), sequences, lengths)


@op
def layer_lstm(x, w, u, b, lengths=None, *, sequences):
    n = u.shape[0]
    h = torch.zeros(x.shape[0], n, dtype=x.dtype)

    def cell(x, hu, h, c):
        i, f, g, o = torch.split(x + hu, n, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return [torch.sigmoid(o) * torch.tanh(c), c]

    ours = recurrent(x @ w + b, u, lengths, sequences, cell, [h, h])
    run = lambda: torch._VF.lstm(x, (h[None], h[None]), [w.T, u.T, b, b * 0], True, 1, 0.0, False, False, True)[:2]
    return ours_and_torch(ours, run, sequences, lengths)


@op
def layer_attention(x, wq, bq, wk, wv, bv, wo, bo, lengths=None, *, heads, causal):
    bk = torch.full_like(bq, 0.5, requires_grad=False)
    n, steps, width = x.shape
    hidden = None if lengths is None else torch.arange(steps) >= lengths.unsqueeze(1)
    mask = torch.triu(torch.ones(steps, steps, dtype=torch.bool), 1) if causal else None
    y, _ = F.multi_head_attention_forward(
        *[x.transpose(0, 1)] * 3, width, heads, torch.cat([wq.T, wk.T, wv.T]), torch.cat([bq, bk, bv]), None, None, False, 0.0, wo.T, bo,
        training=False, key_padding_mask=hidden, need_weights=False, attn_mask=mask)
    return y.transpose(0, 1)


@op
def layer_transformer(x, g1, b1, wq, bq, wk, wv, bv, wo, bo, g2, b2, w1, c1, w2, c2, heads, after):
    width = x.shape[-1:]
    attend = lambda x: layer_attention(x, wq, bq, wk, wv, bv, wo, bo, heads=heads, causal=True)
    dense = lambda x: activation["gelu"](x @ w1 + c1) @ w2 + c2
    if after:
        x = F.layer_norm(x + attend(x), width, g1, b1)
        return F.layer_norm(x + dense(x), width, g2, b2)
    x = x + attend(F.layer_norm(x, width, g1, b1))
    return x + dense(F.layer_norm(x, width, g2, b2))


@op
def loss_weighted_softmax_cce(z, labels, weights, smoothing):
    return F.cross_entropy(z, labels, torch.tensor(weights, dtype=z.dtype), reduction="sum", label_smoothing=smoothing) / z.shape[0]


for name in activation:
    case("layer_activation", name, uniform((3, 6)), name=name)
for shape in [(3, 5), (2, 3, 4)]:
    case("layer_prelu", f"{list(shape)}", uniform(shape), uniform((shape[1],), 0.1, 0.5))
for shape, out, act in [((4, 5), 3, "linear"), ((4, 5), 3, "relu"), ((2, 3, 5), 2, "gelu")]:
    case("layer_dense", f"{list(shape)} {out} {act}", uniform(shape), uniform((shape[-1], out)), uniform((out,)), act=act)
for shape, w, stride, padding, dilation, groups in [
    ((2, 3, 8), (4, 3, 3), [2], [1], [1], 1), ((2, 2, 5, 6), (3, 2, 3, 2), [1, 1], None, [1, 1], 1), ((1, 4, 7, 6), (4, 2, 3, 3), [2, 1], [1, 0], [1, 2], 2),
    ((1, 2, 3, 4, 5), (2, 2, 3, 2, 2), [1, 1, 1], None, [1, 1, 1], 1),
]:
    case("layer_conv", f"{list(shape)} {list(w)} stride {stride} padding {padding} dilation {dilation} groups {groups}", uniform(shape), uniform(w), uniform((w[0],)),
         stride=stride, padding=padding, dilation=dilation, groups=groups)
for shape in [(6, 3), (2, 3, 2, 5)]:
    for name in ["layer_batch_norm", "layer_batch_norm_inference"]:
        c = (shape[1],)
        case(name, f"{list(shape)}", uniform(shape), uniform(c, 0.5, 1.5), uniform(c), uniform(c), uniform(c, 0.2, 2))
case("layer_embedding", "[2 5] of 7", uniform((7, 3)), ints((2, 5), 0, 7))
for name, gates in [("rnn", 1), ("gru", 3), ("lstm", 4)]:
    for sequences in [False, True]:
        for lengths in [None, given(5, 1, 3)]:
            n = 4
            more = ([uniform((n,))] if name == "gru" else []) + ([lengths] if lengths else [])
            case(f"layer_{name}", f"{'sequences' if sequences else 'last'}{' of lengths' if lengths else ''}", uniform((3, 5, 2)), uniform((2, gates * n), -1, 1),
                 uniform((n, gates * n), -1, 1), uniform((gates * n,)), *more, sequences=sequences)
projections = lambda d: [uniform(s, -1, 1) for s in [(d, d), (d,), (d, d), (d, d), (d,), (d, d), (d,)]]
for variant, heads, causal, lengths in [("one head", 1, False, None), ("heads", 3, False, None), ("causal", 2, True, None), ("lengths", 2, False, given(4, 1)),
                                        ("lengths and causal", 3, True, given(2, 3))]:
    case("layer_attention", variant, uniform((2, 4, 6)), *projections(6), *([lengths] if lengths else []), heads=heads, causal=causal)
for after in [False, True]:
    around = lambda: [uniform((6,), 0.5, 1.5), uniform((6,))]
    case("layer_transformer", "norm behind" if after else "norm in front", uniform((2, 3, 6)), *around(), *projections(6), *around(), uniform((6, 8), -1, 1), uniform((8,)),
         uniform((8, 6), -1, 1), uniform((6,)), heads=2, after=after)
for smoothing in [0.0, 0.2]:
    case("loss_weighted_softmax_cce", f"smoothing {smoothing}", uniform((5, 3)), ints((5,), 0, 3), weights=[0.5, 2.0, 1.25], smoothing=smoothing)

# Optimizers

group("optimizer")


def stepped(ps, rate, rule, states):
    """Ten steps by a rule, a function of the number of the step, the gradient and the states, that returns the change and keeps the states."""
    return lambda gs, t: [p.sub_(rule(t, g, s)) for p, g, s in zip(ps, gs, states)]


def formula(name, ps, rate):
    """The optimizers that PyTorch lacks or has another variant of."""
    states = [{k: torch.zeros_like(p) for k in "mvu"} for p in ps]
    b1, b2, eps = 0.9, 0.999, 1e-8

    def rule(t, g, s):
        s["m"] = b1 * s["m"] + (1 - b1) * g
        s["v"] = b2 * s["v"] + (1 - b2) * g * g
        s["u"] = torch.maximum(b2 * s["u"], g.abs())
        m, v = s["m"] / (1 - b1**t), s["v"] / (1 - b2**t)
        if name == "adamax":
            return rate * m / (s["u"] + eps)
        if name == "nadam":
            return rate * (b1 * m + (1 - b1) * g / (1 - b1**t)) / (v.sqrt() + eps)
        own = rate * math.sqrt(1 - b2**t) / (1 - b1**t) / (s["v"].sqrt() + eps)
        return own.clamp(0.1 * (1 - 1 / (1e-3 * t + 1)), 0.1 * (1 + 1 / (1e-3 * t))) * s["m"]

    return stepped(ps, rate, rule, states)


@op
def optimizer(*xs, name, rate):
    ps, targets = [x.detach().clone().requires_grad_() for x in xs[:3]], xs[3:]
    theirs = {
        "sgd": lambda: torch.optim.SGD(ps, rate), "momentum": lambda: torch.optim.SGD(ps, rate, 0.9), "nesterov": lambda: torch.optim.SGD(ps, rate, 0.9, nesterov=True),
        "adagrad": lambda: torch.optim.Adagrad(ps, rate, eps=1e-8), "adadelta": lambda: torch.optim.Adadelta(ps, rate, 0.95, 1e-6),
        "rmsprop": lambda: torch.optim.RMSprop(ps, rate, 0.99, 1e-8), "adam": lambda: torch.optim.Adam(ps, rate), "amsgrad": lambda: torch.optim.Adam(ps, rate, amsgrad=True),
    }
    own = None
    if name in theirs:
        opt = theirs[name]()
    else:
        own = formula(name, ps, rate)
    for t in range(1, 11):
        loss = sum((1 - torch.cos(p - q)).sum() + ((p * q) ** 2).sum() / 8 for p, q in zip(ps, targets))
        gs = torch.autograd.grad(loss, ps)
        with torch.no_grad():
            if own:
                own(gs, t)
            else:
                for p, g in zip(ps, gs):
                    p.grad = g
                opt.step()
    return [p.detach() for p in ps]


for name, rate in [("sgd", 0.1), ("momentum", 0.05), ("nesterov", 0.05), ("adagrad", 0.1), ("adadelta", 1.0), ("rmsprop", 0.02), ("adam", 0.05), ("adamax", 0.05),
                   ("nadam", 0.05), ("amsgrad", 0.05), ("adabound", 0.05)]:
    shapes = [(2, 3), (4,), (1, 2, 2)]
    case("optimizer", name, *[uniform(s) for s in shapes], *[uniform(s) for s in shapes], grad=False, name=name, rate=rate)

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "testdata")
os.makedirs(here, exist_ok=True)
wanted = set(sys.argv[1:])
assert wanted <= ops.keys(), f"no operations {wanted - ops.keys()}"
total = 0
for name, cases in files.items():
    if wanted and not any(c["op"] in wanted for c in cases):
        continue
    lines = ",\n".join(json.dumps(c, separators=(",", ":"), allow_nan=False) for c in cases)
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0, filename="") as z:
        z.write(f"[\n{lines}\n]\n".encode())
    with open(os.path.join(here, name + ".json.gz"), "wb") as f:
        f.write(out.getvalue())
    total += len(out.getvalue())
    print(f"{name}: {len(cases)} cases, {len(out.getvalue())} bytes")
print(f"{total} bytes")
