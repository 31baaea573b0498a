package conformance

// Kernels: every kind of argument arrives, ids are right, groups share memory
// and meet at barriers.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

var kernelChecks = []Row{
	{compilerRow, false, checkCompiler},
	{"kernel/saxpy", true, checkSaxpy},
	{"kernel/scalars", true, checkScalars},
	{"kernel/by_value", true, checkByValue},
	{"kernel/ids", true, checkIDs},
	{"kernel/no_such_dimension", true, checkNoSuchDimension},
	{"kernel/barrier", true, checkBarrier},
	{"kernel/local_arguments", true, checkLocalArguments},
	{"kernel/atomics", true, checkAtomics},
	{"kernel/constant", true, checkConstant},
	{"kernel/views", true, checkKernelViews},
	{"kernel/definitions", true, checkDefinitions},
	{"kernel/named_like_builtin", true, checkNamedLikeBuiltin},
	{"kernel/types", true, checkKernelTypes},
	{"kernel/shared_by_streams", true, checkSharedKernel},
	{"kernel/info", true, checkKernelInfo},
	{"kernel/much_local_memory", true, checkMuchLocal},
	{"kernel/occupancy", true, checkOccupancy},
}

// compilerRow is the row that fails if a device does not compile programs. If it is listed, that
// includes all rows that run programs.
const compilerRow = "kernel/compiler"

func checkCompiler(t *row, d *device) {
	identity, why := d.compiler(t)
	if why != "" {
		t.refused("%s", why)
	}
	expect(t, len(identity) > 0, "Identity is empty, but it is part of the cache key")
	again, _ := d.compiler(t)
	equal(t, identity, again, "Identity is the same at every call")
}

const saxpyText = `kernel void saxpy(float a, global const float *x, global float *y, uint n) {
	size_t i = get_global_id(0);
	if (i < n) y[i] = a * x[i] + y[i];
}`

func checkSaxpy(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	for _, n := range []int{1, 2, 31, 33, 255, 257, 1000, 65537} {
		times := func(a int) []float32 { return made(n, func(i int) float32 { return float32(a * i) }) }
		x, y := upload(t, d, times(1)), upload(t, d, times(2))
		must(t, d.Stream().Launch(k, runtime.Cover(n, 64), float32(3), x, y, uint32(n)))
		mustEqual(t, times(5), read[float32](t, y), "n = %d", n)
	}
}

const scalarText = `kernel void scalars(char c, uchar uc, short s, ushort us, int i, uint ui, long l, ulong ul,
		float f, global long *out, global float *fout) {
	out[0] = c; out[1] = uc; out[2] = s; out[3] = us; out[4] = i; out[5] = ui; out[6] = l; out[7] = ul; fout[0] = f;
}`

func checkScalars(t *row, d *device) {
	k := d.kernel(t, scalarText, "scalars")
	out, fout := d.alloc(t, runtime.I64, 8), d.alloc(t, runtime.F32, 1)
	must(t, d.Stream().Launch(k, runtime.Items(1), int8(-5), uint8(250), int16(-300), uint16(65000), int32(-70000),
		uint32(4e9), int64(-1<<40), uint64(1<<63-1), float32(-0.1), out, fout))
	equal(t, []int64{-5, 250, -300, 65000, -70000, 4e9, -1 << 40, 1<<63 - 1}, read[int64](t, out),
		"each scalar with its own width")
	equal(t, []float32{-0.1}, read[float32](t, fout))
}

const byValueText = `typedef struct { int a; float3 v; uchar last; } item;
kernel void by_value(float4 v, int2 w, item s, global float *out) {
	out[0] = v.x; out[1] = v.w; out[2] = w.y; out[3] = s.a; out[4] = s.v.z; out[5] = s.last; out[6] = sizeof(item);
}`

func checkByValue(t *row, d *device) {
	k := d.kernel(t, byValueText, "by_value")
	v, w, s := make([]byte, 16), make([]byte, 8), make([]byte, 48)
	le := binary.LittleEndian
	le.PutUint32(v, math.Float32bits(1.5))
	le.PutUint32(v[12:], math.Float32bits(4.5))
	le.PutUint32(w[4:], 22)
	le.PutUint32(s, 33)
	le.PutUint32(s[24:], math.Float32bits(6.5)) // a float3 is 16 bytes, aligned to 16
	s[32] = 77
	out := d.alloc(t, runtime.F32, 7)
	must(t, d.Stream().Launch(k, runtime.Items(1), v, w, s, out))
	equal(t, []float32{1.5, 4.5, 22, 33, 6.5, 77, 48}, read[float32](t, out))
}

const idsText = `kernel void ids(global uint *out) {
	uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
	uint i = (z * get_global_size(1) + y) * get_global_size(0) + x;
	uint ok = get_work_dim() == 3
		&& get_group_id(0) * get_local_size(0) + get_local_id(0) == x
		&& get_group_id(1) * get_local_size(1) + get_local_id(1) == y
		&& get_group_id(2) * get_local_size(2) + get_local_id(2) == z
		&& get_num_groups(0) == 3 && get_num_groups(1) == 2 && get_num_groups(2) == 5
		&& get_global_offset(0) == 0;
	out[i] = ok ? i : 0xffffffffu;
}`

func checkIDs(t *row, d *device) {
	k := d.kernel(t, idsText, "ids")
	out := d.alloc(t, runtime.U32, 12*6*5)
	must(t, d.Stream().Launch(k, runtime.Items(12, 6, 5).InGroups(4, 3, 1), out))
	mustEqual(t, made(out.Len(), func(i int) uint32 { return uint32(i) }), read[uint32](t, out))
}

// checkNoSuchDimension queries a fourth dimension, which has one item.
func checkNoSuchDimension(t *row, d *device) {
	k := d.kernel(t, `kernel void ask(global uint *out) {
	out[0] = get_global_size(3), out[1] = get_global_id(3);
}`, "ask")
	out := d.alloc(t, runtime.U32, 2)
	must(t, d.Stream().Launch(k, runtime.Items(1), out))
	equal(t, []uint32{1, 0}, read[uint32](t, out))
}

const barrierText = `kernel void reverse(global int *data) {
	local int tile[64];
	int l = get_local_id(0), n = get_local_size(0);
	tile[l] = data[get_global_id(0)];
	barrier(CLK_LOCAL_MEM_FENCE);
	data[get_global_id(0)] = tile[n - 1 - l];
	for (int step = 0; step < 3; step++) {
		barrier(CLK_LOCAL_MEM_FENCE);
		tile[(l + 1) % n] = data[get_global_id(0)] + step;
		barrier(CLK_LOCAL_MEM_FENCE);
		data[get_global_id(0)] = tile[l];
	}
}`

func checkBarrier(t *row, d *device) {
	k := d.kernel(t, barrierText, "reverse")
	for _, group := range []int{1, 2, 7, 32, 64} {
		data, want := make([]int32, group*9), make([]int32, group*9)
		for i := range data {
			data[i] = int32(i)
			l := ((i%group-3)%group + group) % group // rotated by three to the right
			want[i] = int32(i/group*group+group-1-l) + 3
		}
		b := upload(t, d, data)
		must(t, d.Stream().Launch(k, runtime.Items(len(data)).InGroups(group), b))
		equal(t, want, read[int32](t, b), "groups of %d", group)
	}
}

const localArgText = `kernel void sums(global const int *in, global int *out, local int *a, local int *b) {
	int l = get_local_id(0), n = get_local_size(0);
	a[l] = in[get_global_id(0)];
	b[l] = -a[l];
	barrier(CLK_LOCAL_MEM_FENCE);
	if (l == 0) {
		int s = 0, m = 0;
		for (int i = 0; i < n; i++) { s += a[i]; m += b[i]; }
		out[2 * get_group_id(0)] = s;
		out[2 * get_group_id(0) + 1] = m;
	}
}`

func checkLocalArguments(t *row, d *device) {
	k := d.kernel(t, localArgText, "sums")
	data := made(96, func(i int) int32 { return int32(i * i) })
	in, out := upload(t, d, data), d.alloc(t, runtime.I32, 6)
	for _, size := range []runtime.Local{128, 132, 1024} { // the second argument must not overlap the first
		must(t, d.Stream().Launch(k, runtime.Items(96).InGroups(32), in, out, size, runtime.Local(128)))
		var want []int32
		for g := range 3 {
			s := int32(0)
			for _, x := range data[32*g : 32*g+32] {
				s += x
			}
			want = append(want, s, -s)
		}
		equal(t, want, read[int32](t, out))
	}
}

const atomicText = `kernel void count(global uint *total, global int *least, global int *most, global uint *seen) {
	local uint sub;
	if (get_local_id(0) == 0) sub = 0;
	barrier(CLK_LOCAL_MEM_FENCE);
	atomic_inc(&sub);
	barrier(CLK_LOCAL_MEM_FENCE);
	if (get_local_id(0) == 0) atomic_add(total, sub);
	int i = get_global_id(0) * 37 % 1024 - 500;
	atomic_min(least, i);
	atomic_max(most, i);
	seen[atomic_add(total + 1, 1u)] = 1;
}`

func checkAtomics(t *row, d *device) {
	k := d.kernel(t, atomicText, "count")
	total, least, most := upload(t, d, []uint32{0, 0}), upload(t, d, []int32{0}), upload(t, d, []int32{0})
	seen := upload(t, d, make([]uint32, 1024))
	must(t, d.Stream().Launch(k, runtime.Items(1024).InGroups(32), total, least, most, seen))
	equal(t, []uint32{1024, 1024}, read[uint32](t, total))
	equal(t, []int32{-500}, read[int32](t, least))
	equal(t, []int32{523}, read[int32](t, most))
	expect(t, !slices.Contains(read[uint32](t, seen), 0), "every value is handed out once")
}

const constantText = `constant float table[4] = { 1.0f, 2.0f, 4.0f, 8.0f };
kernel void look(constant int *which, global float *out) {
	out[get_global_id(0)] = table[which[get_global_id(0)]];
}`

func checkConstant(t *row, d *device) {
	k := d.kernel(t, constantText, "look")
	which, out := upload(t, d, []int32{3, 0, 2, 1, 3}), d.alloc(t, runtime.F32, 5)
	must(t, d.Stream().Launch(k, runtime.Items(5), which, out))
	equal(t, []float32{8, 1, 4, 2, 8}, read[float32](t, out))
}

// checkKernelViews passes views at every element offset: a backend that cannot address them
// directly has to pass them in another way.
func checkKernelViews(t *row, d *device) {
	k := d.kernel(t, saxpyText, "saxpy")
	const n = 64
	for off := range 9 {
		xs, ys := made(n+16, func(i int) float32 { return float32(i) }), slices.Repeat([]float32{100}, n+16)
		x, y := upload(t, d, xs), upload(t, d, ys)
		xv, yv := d.slice(t, x, off, n), d.slice(t, y, 2*off%7, n)
		must(t, d.Stream().Launch(k, runtime.Items(n), float32(1), xv, yv, uint32(n)))
		for i := range n {
			ys[2*off%7+i] += xs[off+i]
		}
		equal(t, ys, read[float32](t, y), "offset %d", off)
	}
}

// checkNamedLikeBuiltin: a kernel may have the name of a built-in function, and may call that
// function.
func checkNamedLikeBuiltin(t *row, d *device) {
	const text = `int low(int x) { return clamp(x, LO, 6); }
kernel void clamp(global int *out, int lo, int hi) { int i = get_global_id(0); out[i] = clamp(low(i), lo, hi); }
kernel void fma(global int *out) { clamp(out, 3, 5); out[get_global_id(0)] += 10; }`
	p := d.program(t, text, source.Define{Name: "LO", Value: "2"})
	out := d.alloc(t, runtime.I32, 8)
	for _, c := range []struct {
		name string
		args []any
		want []int32
	}{
		{"clamp", []any{out, int32(2), int32(4)}, []int32{2, 2, 2, 3, 4, 4, 4, 4}},
		{"fma", []any{out}, []int32{13, 13, 13, 13, 14, 15, 15, 15}},
	} {
		k := call(p.Kernel(c.name)).must(t)
		must(t, d.Stream().Launch(k, runtime.Items(8), c.args...))
		equal(t, c.want, read[int32](t, out))
	}
}

func checkDefinitions(t *row, d *device) {
	const text = `kernel void k(global T *out) { out[get_global_id(0)] = (T)(VALUE) + SPACED; }`
	spaced := source.Define{Name: "SPACED", Value: "(1 + 2)"}
	i := d.kernel(t, text, "k", source.Define{Name: "T", Value: "int"}, source.Define{Name: "VALUE", Value: "2.75f"},
		spaced)
	f := d.kernel(t, text, "k", source.Define{Name: "T", Value: "float"}, source.Define{Name: "VALUE", Value: "2.75f"},
		spaced)
	iout, fout := d.alloc(t, runtime.I32, 2), d.alloc(t, runtime.F32, 2)
	must(t, d.Stream().Launch(i, runtime.Items(2), iout))
	must(t, d.Stream().Launch(f, runtime.Items(2), fout))
	equal(t, []int32{5, 5}, read[int32](t, iout))
	equal(t, []float32{5.75, 5.75}, read[float32](t, fout))
}

func checkKernelTypes(t *row, d *device) {
	const text = `kernel void bump(global T *p) { p[get_global_id(0)] += 1; }`
	bump(t, d, text, "char", []int8{-128, 0, 126})
	bump(t, d, text, "uchar", []uint8{0, 254})
	bump(t, d, text, "short", []int16{-32768, 5})
	bump(t, d, text, "ushort", []uint16{65534, 5})
	bump(t, d, text, "int", []int32{-1, 5})
	bump(t, d, text, "uint", []uint32{4e9, 5})
	bump(t, d, text, "long", []int64{-1 << 62, 5})
	bump(t, d, text, "ulong", []uint64{1 << 63, 5})
	bump(t, d, text, "float", []float32{-1.5, 5})
	if d.Features().FP64 {
		bump(t, d, text, "double", []float64{-1.5, 1 << 52})
	}
	half := d.kernel(t, `kernel void twice(global half *p) {
		int i = get_global_id(0);
		vstore_half(2 * vload_half(i, p), i, p);
	}`, "twice")
	b := upload(t, d, []runtime.Float16{0x3c00, 0xc000, 0x0001})
	must(t, d.Stream().Launch(half, runtime.Items(3), b))
	equal(t, []runtime.Float16{0x4000, 0xc400, 0x0002}, read[runtime.Float16](t, b))
}

func bump[T runtime.Element](t *row, d *device, text, typ string, data []T) {
	t.Helper()
	k := d.kernel(t, text, "bump", source.Define{Name: "T", Value: typ})
	b := upload(t, d, data)
	must(t, d.Stream().Launch(k, runtime.Items(len(data)), b))
	for i := range data {
		data[i]++
	}
	equal(t, data, read[T](t, b), typ)
}

// checkSharedKernel launches one kernel from many goroutines on streams of their
// own: arguments of one launch must never reach another.
func checkSharedKernel(t *row, d *device) {
	k := d.kernel(t, `kernel void put(global int *out, int a, int b) { out[get_global_id(0)] = a * 1000 + b; }`, "put")
	d.onStreams(t, func(s *runtime.Stream, number int) {
		b, err := d.Alloc(runtime.I32, 256)
		if !noError(t, err) {
			return
		}
		defer b.Close()
		for i := range 30 {
			noError(t, s.Launch(k, runtime.Items(256), b, int32(number), int32(i)))
			got := make([]byte, 4)
			noError(t, s.Read(t.Context(), b, 4*255, got))
			equal(t, uint32(number*1000+i), binary.LittleEndian.Uint32(got))
		}
	})
}

func checkKernelInfo(t *row, d *device) {
	p := d.program(t, barrierText+"\n"+saxpyText)
	k := call(p.Kernel("reverse")).must(t)
	info := k.Info()
	equal(t, "reverse", info.Name)
	expect(t, info.Implementation != "", "KernelInfo names the implementation")
	expect(t, !info.Native, "user text has no native implementation")
	equal(t, "saxpy(float a, global const float * x, global float * y, uint n)",
		fmt.Sprint(call(p.Kernel("saxpy")).must(t)))
}
