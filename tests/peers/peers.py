"""Calls of PyTorch and FAISS that peers measures, one process per setting.

Each line that is read is a request as JSON, each line that is written its answer:

  {"call": "add", "args": {"n": 1000}}   prepare a call          -> {"note": "..."}
  {"run": 3, "warm": 1, "of": "add"}     make it once, and three times more -> {"ns": one of the three}
  {"drop": "add"}                        forget it and its data  -> {}

or {"error": ...}; {"missing": ...} names Debian packages. An answer comes when the
libraries' threads are asleep: they would go on spinning while others are measured.
A call is made once before any is timed, and allocates what the library allocates.
"""
import json, os, sys, time

THREADS = int(os.environ["OMP_NUM_THREADS"])
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of libraries must not mix with the replies


def torch():
    import torch
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    return torch


def note(t):
    kind = [w.split(":")[1].strip() for w in t.__config__.show().split("\n") if "CPU capability" in w]
    return "PyTorch %s, %s" % (t.__version__, kind[0] if kind else "?")


def elementwise(f):
    def call(n):
        t = torch()
        x, y, z = t.rand(n), t.rand(n), t.empty(n)
        return note(t), f(t, x, y, z)
    return call


add = elementwise(lambda t, x, y, z: lambda: t.add(x, y, out=z))
copy = elementwise(lambda t, x, y, z: lambda: z.copy_(x))
sum = elementwise(lambda t, x, y, z: lambda: x.sum())
# In place, as saxpy.
saxpy = elementwise(lambda t, x, y, z: lambda: y.add_(x, alpha=0.001))


def cast(n, to):
    """A conversion into memory that is there."""
    t = torch()
    x, z = t.rand(n) * 100, t.empty(n, dtype=getattr(t, to))
    return note(t), lambda: z.copy_(x)


def rows_call(f):
    """A call that works on rows, into memory that is there where PyTorch can."""
    def call(rows, cols):
        t = torch()
        x, z = t.rand(rows, cols), t.empty(rows, cols)
        return note(t), f(t, x, z)
    return call


softmax = rows_call(lambda t, x, z: lambda: t._softmax(x, 1, False, out=z))
softmax_allocating = rows_call(lambda t, x, z: lambda: t.softmax(x, 1))


def convolution(form, n, c, h, w, out, kernel, stride=1, pad=0, dilation=1, groups=1):
    t = torch()
    x, f = t.rand(n, c, h, w), t.nn.Conv2d(c, out, kernel, stride, pad, dilation, groups, bias=False)
    return note(t) + ", oneDNN" * t.backends.mkldnn.is_available(), x, f.to(memory_format=form(t))


def conv2d(**kw):
    text, x, f = convolution(lambda t: t.contiguous_format, **kw)
    return text, lambda: f(x)


def conv2d_last(**kw):
    """The same with channels last, which oneDNN may like better."""
    text, x, f = convolution(lambda t: t.channels_last, **kw)
    x = x.to(memory_format=torch().channels_last)
    return text, lambda: f(x)


def conv2d_converted(**kw):
    """Channels last inside: what it costs where x and y have the channels first."""
    text, x, f = convolution(lambda t: t.channels_last, **kw)
    last = torch().channels_last
    return text, lambda: f(x.contiguous(memory_format=last)).contiguous()


def knn(vectors, dim, queries, k):
    """IndexFlatL2: distances to all vectors, and the k nearest."""
    import faiss, numpy
    faiss.omp_set_num_threads(THREADS)
    r = numpy.random.default_rng(1)
    index = faiss.IndexFlatL2(dim)
    for _ in range(10):
        index.add(r.random((vectors // 10, dim), dtype="f"))
    q = r.random((queries, dim), dtype="f")
    return "FAISS %s, %s" % (faiss.__version__, faiss.get_compile_options().strip()), lambda: index.search(q, k)


PACKAGES = {"torch": "python3-torch", "faiss": "python3-faiss", "numpy": "python3-numpy"}


def quiet():
    """Waits until no other thread of this process runs or waits for a processor.

    The time that they used would not do: Linux adds that of a running thread at the clock's ticks.
    """
    end = time.perf_counter() + 2
    while time.perf_counter() < end and running() > 1:
        time.sleep(0.001)


def running():
    n = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/stat" % thread) as f:
                n += f.read().rpartition(")")[2].startswith(" R")
        except OSError:
            pass  # it has ended
    return n


def main():
    calls = {}
    for line in sys.stdin:
        try:
            m, answer = json.loads(line), {}
            if "call" in m:
                calls.pop(m["call"], None)
                answer["note"], call = globals()[m["call"]](**m.get("args", {}))
                call()
                calls[m["call"]] = call
                call = None
            elif "run" in m:
                n, call = range(m["run"]), calls[m["of"]]
                for _ in range(m["warm"]):
                    call()
                start = time.perf_counter_ns()
                for _ in n:
                    call()
                answer["ns"] = (time.perf_counter_ns() - start) / len(n)
                call = None
            else:
                del calls[m["drop"]]
        except ImportError as e:
            answer = {"missing": PACKAGES.get(e.name, e.name)}
        except Exception as e:
            answer = {"error": "%s: %s" % (type(e).__name__, e)}
        quiet()
        print(json.dumps(answer), file=answers, flush=True)


main()
