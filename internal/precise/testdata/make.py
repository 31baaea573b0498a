#!/usr/bin/env python3
# Makes functions.txt: a line for each call, with the name of a function and the bits of arguments and result, all float64. The results are
# computed by mpmath with hundreds of digits and rounded once.
#
#   python3 make.py [NUMBER [SEED]] > functions.txt
#
# NUMBER is how many random arguments each function has beside those at its limits.
import random, struct, sys
from fractions import Fraction

import mpmath as m
from mpmath import mp, mpf

number, rnd = int(sys.argv[1]) if len(sys.argv) > 1 else 40, random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
inf, nan = m.inf, m.nan


def bits(x):
    return "%016x" % struct.unpack("<Q", struct.pack("<d", x))[0]


def rounded(x, like):
    """The float nearest to x, also where it is denormal; zero has the sign of like."""
    if m.isnan(x):
        return float("nan")
    if m.isinf(x):
        return float(x)
    sign, man, exp, _ = x._mpf_
    try:
        y = float(Fraction(int(man)) * Fraction(2) ** exp) if exp > -8000 else 0.0
    except OverflowError:
        y = float("inf")
    return -y if sign or y == 0 and struct.pack(">d", like)[0] & 128 else y


def within(f, low, high, below, above):
    return lambda x: below if x < low else above if x > high else f(x)


one = {  # and whether the function of -0 is -0
    "sqrt": (lambda x: m.sqrt(x) if x >= 0 else nan, True),
    "exp": (within(m.exp, -800, 800, mpf(0), inf), False),
    "exp2": (within(lambda x: mpf(2) ** x, -1200, 1200, mpf(0), inf), False),
    "expm1": (within(m.expm1, -800, 800, mpf(-1), inf), True),
    "log": (lambda x: m.log(x) if x > 0 else -inf if x == 0 else nan, False),
    "log2": (lambda x: m.log(x) / m.log(2) if x > 0 else -inf if x == 0 else nan, False),
    "log1p": (lambda x: m.log1p(x) if x > -1 else -inf if x == -1 else nan, True),
    "sin": (m.sin, True), "cos": (m.cos, False), "tan": (m.tan, True), "atan": (m.atan, True),
    "sinh": (within(m.sinh, -800, 800, -inf, inf), True), "cosh": (within(m.cosh, -800, 800, inf, inf), False),
    "tanh": (within(m.tanh, -100, 100, mpf(-1), mpf(1)), True),
    "erf": (within(m.erf, -10, 10, mpf(-1), mpf(1)), True), "erfc": (within(m.erfc, -10, 30, mpf(2), mpf(0)), False),
    "sigmoid": (within(lambda x: 1 / (1 + m.exp(-x)), -800, 800, mpf(0), mpf(1)), False),
    "gelu": (lambda x: mpf(0) if x < -50 else x if x > 50 else x * m.erfc(-x / m.sqrt(2)) / 2, True),
}


def power(x, y):
    if y == 0 or x == 1:
        return mpf(1)
    if x == 0:
        return None  # signs of zero, which mpmath lacks
    if x < 0 and y != m.floor(y):
        return nan
    l = m.log(abs(x)) * y
    r = inf if l > 800 else mpf(0) if l < -800 else m.exp(l)
    return -r if x < 0 and y % 2 == 1 else r


def atan2(y, x):
    return m.atan2(y, x) if y != 0 and x != 0 else None


def mod(x, y):
    if x == 0 or y == 0:
        return None
    a, b = Fraction(float(abs(x))), Fraction(float(abs(y)))
    r = a % b
    return m.sign(x) * mpf(r.numerator) / r.denominator


ends = [0.0, 5e-324, 1e-320, 2.225073858507201e-308, 2.2250738585072014e-308, 1e-30, 2**-54, 2**-53, 1e-9, 0.1, 0.5, 0.7071067811865475,
        0.7071067811865476, 1 - 2**-53, 1.0, 1 + 2**-52, 1.5707963267948966, 2.0, 3.141592653589793, 4.71238898038469, 10.0, 22.0, 36.0, 38.0,
        355.0, 709.0, 709.5744502375717, 709.782712893384, 709.79, 710.4758600739439, 745.1332191019411, 746.0, 1022.0, 1024.0, 1074.0, 1e5,
        2.0**29, 1e22, 5.319372648326541e255, 1.7976931348623157e308]


def arguments():
    list = [s * v for v in ends for s in (1.0, -1.0)]
    while len(list) < 2 * len(ends) + number:
        v = (
            lambda: struct.unpack("<d", struct.pack("<Q", rnd.getrandbits(64)))[0],
            lambda: struct.unpack("<d", struct.pack("<Q", rnd.getrandbits(rnd.randrange(1, 53))))[0],
            lambda: rnd.uniform(-2, 2), lambda: rnd.gauss(0, 30), lambda: rnd.uniform(-750, 750),
            lambda: 1 + rnd.gauss(0, 10 ** -rnd.uniform(1, 16)),
        )[rnd.randrange(6)]() * rnd.choice((1, 1, 1, -1))
        if v - v == 0:
            list.append(v)
    return list


for name, (f, odd) in one.items():
    mp.prec = 2400 if name in ("sin", "cos", "tan") else 400
    for x in arguments():
        print(name, bits(x), bits(rounded(f(mpf(x)), x if odd else 1.0)))
for name, f, prec in (("pow", power, 500), ("atan2", atan2, 2400), ("mod", mod, 2400)):
    mp.prec = prec
    for x, y in zip(rnd.sample(a := arguments(), len(a)), arguments()):
        z = f(mpf(x), mpf(y))
        if z is not None:
            print(name, bits(x), bits(y), bits(rounded(z, x if name != "pow" or y % 2 == 1 else 1.0)))
