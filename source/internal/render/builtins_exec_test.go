package render_test

// The differential test of the built-ins: every form of the table, rendered for
// the host, against an OpenCL device. It runs with CONCORD_STRESS=check, since
// the device compiles some thousand kernels. The fixed expectations that run
// everywhere are in testdata/prelude_test.cc.

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/tree"
)

// ulpLimit is OpenCL 1.2's limit of table 7.4, in units of the last place; either side may deviate
// by that much. Functions that are not in the table are exact. -1: the function is called, but its
// results are not compared.
var ulpLimit = map[string]float64{
	"acos": 4, "acosh": 4, "acospi": 5, "asin": 4, "asinh": 4, "asinpi": 5, "atan": 5, "atan2": 6,
	"atanh": 5, "atanpi": 5, "atan2pi": 6, "cbrt": 4, "cos": 4, "cosh": 4, "cospi": 4, "erfc": 16,
	"erf": 16, "exp": 3, "exp2": 3, "exp10": 3, "expm1": 3, "hypot": 4, "log": 3, "log2": 3,
	"log10": 3, "log1p": 2, "pow": 16, "pown": 16, "powr": 16, "rootn": 16, "rsqrt": 2, "sin": 4,
	"sincos": 4, "sinh": 4, "sinpi": 4, "sqrt": 3, "tan": 5, "tanh": 5, "tanpi": 6, "tgamma": 16,
	"lgamma": 64, "lgamma_r": -1, "mad": -1, "nan": -1, "degrees": 2, "radians": 2, "mix": 8, "smoothstep": 16,
	"dot": -1, "cross": -1, "distance": 16, "length": 8, "normalize": 8, "fast_distance": -1,
	"fast_length": -1, "fast_normalize": -1,
}

// diffSkip are functions that are not compared, with the reason.
var diffSkip = map[string]string{
	"vec_step": "an operator",
}

// vectorTrig are functions whose vector forms PoCL 3.1 computes wrongly when one
// lane is large: cos(1e-10f) is 0.9999 beside cos(1e30f).
var vectorTrig = []string{"cos", "sin", "tan", "sincos"}

// openFor reports whether OpenCL does not define the result for these inputs: a NaN in a common
// function, or a lower limit above the upper one.
func (c *diffCase) openFor(in []uint64) bool {
	switch c.b.Name {
	case "max", "min", "clamp", "mix", "step", "smoothstep", "degrees", "radians":
	default:
		return c.outOfRange(in)
	}
	less := func(k source.Kind, a, b uint64) bool {
		switch k {
		case source.Float:
			return math.Float32frombits(uint32(a)) < math.Float32frombits(uint32(b))
		case source.Double:
			return math.Float64frombits(a) < math.Float64frombits(b)
		case source.Half:
			return halfValue(a) < halfValue(b)
		}
		shift := 64 - 8*tree.KindSize(k)
		if signedKind(k) {
			return int64(a<<shift) < int64(b<<shift)
		}
		return a < b
	}
	for i, a := range c.args {
		if isFloat(a.Kind) && distance(a.Kind, in[i], ^uint64(0)>>(64-8*tree.KindSize(a.Kind))) == 0 {
			return true
		}
	}
	switch c.b.Name {
	case "clamp":
		return less(c.args[0].Kind, in[2], in[1])
	case "smoothstep":
		inf := func(v uint64) bool { return strings.Contains(show(c.args[0].Kind, v), "Inf") }
		return !less(c.args[0].Kind, in[0], in[1]) || inf(in[0]) || inf(in[1])
	}
	return false
}

type diffCase struct {
	kernel string
	b      *builtins.Func
	call   builtins.Call
	args   []builtins.Type // of the parameters; pointers are second results
	files  []string
	outs   []builtins.Type
	got    [2][]string // output files of host and device
}

func isInt(k source.Kind) bool   { return k >= source.Char && k <= source.ULong }
func isFloat(k source.Kind) bool { return k >= source.Half && k <= source.Double }
func signedKind(k source.Kind) bool {
	return k == source.Char || k == source.Short || k == source.Int || k == source.Long
}

// clName returns the OpenCL C name of a type.
func clName(t builtins.Type) string { return tree.Vector(t.Kind, t.Lanes()).String() }

// diffTypes lists the types that the test uses for G.
func diffTypes(c *builtins.Class, half bool) []builtins.Type {
	if c == nil { // the form has no generic type
		return []builtins.Type{{Kind: source.Float, Width: 1}}
	}
	var ts []builtins.Type
	for k := source.Char; k <= source.Double; k++ {
		for _, w := range []int{1, 3, 4, 2, 8, 16} {
			t := builtins.Type{Kind: k, Width: w}
			if (k != source.Half || half) && c.Has(t) && (w == 1 || w == 4 || w == 3 && k == source.Float) {
				ts = append(ts, t)
			}
		}
	}
	return ts
}

// diffCases makes one case per form and type; those of half on request.
func diffCases(only string, half bool) []diffCase {
	var names []string
	for name := range builtins.Table() {
		names = append(names, name)
	}
	sort.Strings(names)
	var cs []diffCase
	for _, name := range names {
		b := builtins.Table()[name]
		memory := strings.HasPrefix(name, "v") || b.Atomic
		if b.Member || memory || diffSkip[name] != "" || only != "" && !strings.HasPrefix(name, only) {
			continue
		}
		for i := range b.Forms {
			f := &b.Forms[i]
			for _, g := range diffTypes(f.Class, half) {
				var args []builtins.Type
				for _, s := range f.Params {
					hint := builtins.Type{Kind: source.UInt, Width: 4}
					a := s.Of(g, hint)
					a.Space = source.Private
					args = append(args, a)
				}
				call, fitting := b.Resolve(args, &source.Features{FP64: true, FP16: true})
				if len(fitting) != 1 || call.Result.Kind == source.Half && !half || len(b.Forms) > 1 && i > 0 && g.Lanes() == 1 {
					continue
				}
				kernel := fmt.Sprintf("k%d_%s", len(cs), name)
				cs = append(cs, diffCase{kernel: kernel, b: b, call: call, args: args})
			}
		}
	}
	return cs
}

// outOfRange reports whether a conversion without saturation has an input that its integer type
// cannot hold.
func (c *diffCase) outOfRange(in []uint64) bool {
	if !strings.HasPrefix(c.b.Name, "convert_") || strings.Contains(c.b.Name, "_sat") || !isFloat(c.args[0].Kind) ||
		!isInt(c.call.Result.Kind) {
		return false
	}
	x := math.Float64frombits(in[0])
	if c.args[0].Kind == source.Float {
		x = float64(math.Float32frombits(uint32(in[0])))
	}
	k := c.call.Result.Kind
	bits := 8 * tree.KindSize(k)
	low, high := 0.0, math.Ldexp(1, bits)
	if signedKind(k) {
		low, high = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
	}
	return !(x >= low && x < high-1)
}

// convertCases are the explicit conversions between all scalar types, and of
// some vectors.
func convertCases() []diffCase {
	var cs []diffCase
	for to := source.Char; to <= source.Double; to++ {
		for from := source.Char; from <= source.Double; from++ {
			for _, sat := range []string{"", "_sat"} {
				for _, mode := range []string{"", "_rte", "_rtz", "_rtp", "_rtn"} {
					w := 1
					if mode == "_rtp" || mode == "" {
						w = 4
					}
					if to == source.Half || from == source.Half || sat != "" && !isInt(to) {
						continue
					}
					r, a := builtins.Type{Kind: to, Width: w}, builtins.Type{Kind: from, Width: w}
					name := "convert_" + clName(r) + sat + mode
					cs = append(cs, diffCase{kernel: fmt.Sprintf("k%d_%s", len(cs), name), b: &builtins.Func{Name: name},
						call: builtins.Call{Result: r}, args: []builtins.Type{a}})
				}
			}
		}
	}
	return cs
}

// text is the kernel of a case.
func (c *diffCase) text() string {
	var params, args []string
	pre, post := "", ""
	for i, a := range c.args {
		if a.Ptr {
			v := builtins.Type{Kind: a.Kind, Width: a.Width}
			params = append(params, fmt.Sprintf("global %s *q%d", clName(v), i))
			pre += fmt.Sprintf("%s v%d; ", clName(v), i)
			post += fmt.Sprintf(" q%d[i] = v%d;", i, i)
			args = append(args, fmt.Sprintf("&v%d", i))
			continue
		}
		params = append(params, fmt.Sprintf("global const %s *a%d", clName(a), i))
		args = append(args, fmt.Sprintf("a%d[i]", i))
	}
	params = append(params, fmt.Sprintf("global %s *r", clName(c.call.Result)))
	return fmt.Sprintf("kernel void %s(%s) { size_t i = get_global_id(0); %sr[i] = %s(%s);%s }\n", c.kernel,
		strings.Join(params, ", "), pre, c.b.Name, strings.Join(args, ", "), post)
}

// special returns the edge values of a kind, followed by random ones.
func special(k source.Kind, name string, r *rand.Rand) []uint64 {
	var vs []uint64
	switch {
	case k == source.Float:
		for _, f := range []float32{0, 1, 0.5, 2, 3, 1.5, 2.5, 0.25, 0.75, 10, 100, 1e-3, 1e10, 1e-10, 1e30, 1e-30, 3e38,
			1e-38, 1e-44,
			math.Pi, math.Pi / 2, math.E, 16777216, 8388607.5, 2147483648, 0.9999999, 1.0000001, float32(math.Inf(1)),
			float32(math.NaN())} {
			vs = append(vs, uint64(math.Float32bits(f)), uint64(math.Float32bits(-f)))
		}
		for i := 0; i < 40; i++ {
			vs = append(vs, uint64(r.Uint32()), uint64(math.Float32bits(float32(r.NormFloat64()*20))))
		}
	case k == source.Double:
		for _, f := range []float64{0, 1, 0.5, 2, 3, 1.5, 2.5, 0.25, 0.75, 10, 100, 1e-3, 1e10, 1e-10, 1e300, 1e-300, 1.7e308,
			5e-324,
			math.Pi, math.Pi / 2, math.E, 1 << 53, 1<<52 + 0.5, 2147483648, 0.9999999999, math.Inf(1), math.NaN()} {
			vs = append(vs, math.Float64bits(f), math.Float64bits(-f))
		}
		for i := 0; i < 40; i++ {
			vs = append(vs, r.Uint64(), math.Float64bits(r.NormFloat64()*20))
		}
	default:
		bits := 8 * tree.KindSize(k)
		mask := uint64(1)<<(bits-1)<<1 - 1
		for _, v := range []uint64{0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 33, 100, 127, 128, 255, 1 << 15, 1<<16 - 1, 1 << 31,
			1<<32 - 1,
			mask, mask - 1, mask >> 1, mask>>1 + 1, mask >> 2} {
			vs = append(vs, v&mask)
		}
		for i := 0; i < 50; i++ {
			vs = append(vs, r.Uint64()&mask, r.Uint64()&mask>>uint(r.Intn(bits)))
		}
		if strings.HasSuffix(name, "24") { // beyond 24 bits the result is undefined
			for i, v := range vs {
				vs[i] = v & 0xffffff
				if k == source.Int {
					vs[i] = uint64(uint32(int32(v<<8) >> 8))
				}
			}
		}
	}
	return vs
}

const diffItems = 2048

// input makes the data of one parameter. The first two parameters have all pairs of their edge
// values, as far as there are enough items.
func (c *diffCase) input(at int, t builtins.Type, r *rand.Rand) []byte {
	vs := special(t.Kind, c.b.Name, r)
	lanes := t.Lanes()
	if lanes == 3 {
		lanes = 4
	}
	n, out := diffItems*lanes, []byte(nil)
	for i := 0; i < n; i++ {
		j := i
		if at == 1 {
			j = i / len(vs)
		} else if at == 2 {
			j = r.Intn(len(vs))
		}
		if lanes > 1 && at > 0 {
			j = r.Intn(len(vs))
		}
		v := vs[j%len(vs)]
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		out = append(out, b[:tree.KindSize(t.Kind)]...)
	}
	return out
}

func TestBuiltinsAgainstDevice(t *testing.T) {
	if os.Getenv("CONCORD_STRESS") != "check" {
		t.Skip("CONCORD_STRESS=check compares with an OpenCL device")
	}
	k := buildTools(t)
	host, device := filepath.Join(k.dir, "bhost"), filepath.Join(k.dir, "bdevice")
	build := func(out string, args ...string) {
		b, err := exec.Command("gcc", append([]string{"-O1", "-w", "-o", out, "testdata/bdriver.c", "-ldl", "-lpthread"},
			args...)...).CombinedOutput()
		require.NoError(t, err, "%s", head(b))
	}
	build(host)
	build(device, "-DPOCL")
	pair := diffPair{host: host, device: device, target: source.OpenCL, features: source.Portable}
	cases := diffCases(os.Getenv("CONCORD_BUILTIN"), false)
	if p := os.Getenv("CONCORD_BUILTIN"); p == "" || p == "convert" {
		cases = append(cases, convertCases()...)
	}
	for lo := 0; lo < len(cases); lo += 100 {
		diffBatch(t, k, pair, cases[lo:min(lo+100, len(cases))])
	}
}

// diffPair is a driver for host renderings and one for renderings in another language.
type diffPair struct {
	host, device string
	target       source.Target
	features     source.Features
	write        func(t *testing.T, file string, cases []diffCase) // what the driver reads, if that is no rendering
}

// diffBatch runs a hundred kernels as one program on both sides.
func diffBatch(t *testing.T, k tools, pair diffPair, cases []diffCase) {
	text := ""
	var jobs [2]strings.Builder
	for i := range cases {
		c := &cases[i]
		text += c.text()
		r := rand.New(rand.NewSource(int64(i)))
		var line [2]string
		add := func(t builtins.Type, suffix string) {
			bytes, _ := tree.Vector(t.Kind, t.Lanes()).Size()
			c.outs = append(c.outs, t)
			for s := range line {
				f := filepath.Join(k.dir, fmt.Sprintf("%s%s.%d", c.kernel, suffix, s))
				c.got[s] = append(c.got[s], f)
				line[s] += fmt.Sprintf(" out:%s:%d", f, bytes*diffItems)
			}
		}
		for j, a := range c.args {
			if a.Ptr {
				add(builtins.Type{Kind: a.Kind, Width: a.Width}, fmt.Sprintf("q%d", j))
				continue
			}
			f := filepath.Join(k.dir, fmt.Sprintf("%s.in%d", c.kernel, j))
			require.NoError(t, os.WriteFile(f, c.input(j, a, r), 0o644))
			c.files = append(c.files, f)
			for s := range line {
				line[s] += " in:" + f
			}
		}
		add(c.call.Result, "r")
		for s := range line {
			fmt.Fprintf(&jobs[s], "%s %d%s\n", c.kernel, diffItems, line[s])
		}
	}
	u, err := source.Parse(text, source.Options{Name: "builtins.cl", Features: &pair.features})
	require.NoError(t, err)
	cpp, err := u.Render(source.Host)
	require.NoError(t, err)
	so := k.compile(t, "builtins", cpp)
	cl := filepath.Join(k.dir, "builtins.cl")
	if pair.write != nil {
		pair.write(t, cl, cases)
	} else {
		other, err := u.Render(pair.target)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(cl, []byte(other), 0o644))
	}
	for s, run := range [][]string{{pair.host, so}, {pair.device, cl}} {
		job := filepath.Join(k.dir, fmt.Sprintf("job%d", s))
		require.NoError(t, os.WriteFile(job, []byte(jobs[s].String()), 0o644))
		b, err := exec.Command(run[0], run[1], job).CombinedOutput()
		require.NoError(t, err, "%s", head(b))
	}
	for i := range cases {
		cases[i].compare(t)
		for _, f := range append(append(cases[i].files, cases[i].got[0]...), cases[i].got[1]...) {
			os.Remove(f)
		}
	}
}

// compare reports the first difference of a case and how many there are.
func (c *diffCase) compare(t *testing.T) {
	limit := ulpLimit[c.b.Name] * 2
	if strings.HasPrefix(c.b.Name, "half_") {
		limit = 16384
	}
	if strings.HasPrefix(c.b.Name, "native_") {
		limit = -1 // native_ results are implementation-defined
	}
	for _, name := range vectorTrig {
		base := strings.TrimPrefix(strings.TrimPrefix(c.b.Name, "half_"), "native_")
		if base == name && c.args[0].Lanes() > 1 {
			return
		}
	}
	if limit < 0 {
		return
	}
	var ins [][]byte
	for _, f := range c.files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		ins = append(ins, b)
	}
	for o, ty := range c.outs {
		a, err := os.ReadFile(c.got[0][o])
		require.NoError(t, err)
		b, err := os.ReadFile(c.got[1][o])
		require.NoError(t, err)
		if ty.Kind == source.Half { // both are computed in float, and rounded
			limit = min(limit, 1)
		}
		size := tree.KindSize(ty.Kind)
		lanes := ty.Lanes()
		if lanes == 3 {
			lanes = 4
		}
		bad, first, worst := 0, "", 0.0
		for i := 0; i < len(a)/size; i++ {
			if ty.Lanes() == 3 && i%4 == 3 {
				continue
			}
			x, y := lane(a, i, size), lane(b, i, size)
			d := distance(ty.Kind, x, y)
			if d > limit {
				if in := c.inputs(ins, i/lanes, i%lanes); c.openFor(in) {
					continue
				}
				worst = max(worst, d)
				bad++
				if bad <= 3 {
					first += fmt.Sprintf("\n  item %d lane %d: host %s, device %s, %s", i/lanes, i%lanes, show(ty.Kind, x),
						show(ty.Kind, y), c.showInputs(ins, i/lanes, i%lanes))
				}
			}
		}
		assert.Zero(t, bad, "%s -> %s output %d: %d differences, worst %g%s", strings.TrimSpace(c.text()), clName(ty), o, bad,
			worst, first)
	}
}

// inputs are the arguments that went into a lane of an item.
func (c *diffCase) inputs(files [][]byte, item, l int) []uint64 {
	var in []uint64
	for _, a := range c.args {
		if a.Ptr {
			continue
		}
		lanes := a.Lanes()
		if lanes == 3 {
			lanes = 4
		}
		in = append(in, lane(files[len(in)], item*lanes+min(l, lanes-1), tree.KindSize(a.Kind)))
	}
	return in
}

func (c *diffCase) showInputs(files [][]byte, item, l int) string {
	s := "of"
	for i, v := range c.inputs(files, item, l) {
		s += " " + show(c.args[i].Kind, v)
	}
	return s
}

func lane(b []byte, i, size int) uint64 {
	var w [8]byte
	copy(w[:], b[i*size:(i+1)*size])
	return binary.LittleEndian.Uint64(w[:])
}

// halfValue returns the number with the bits of a half.
func halfValue(v uint64) float32 {
	return math.Float32frombits(uint32(tree.BitsValue(tree.Half, v).Convert(tree.FloatType).Bits))
}

func show(k source.Kind, v uint64) string {
	switch k {
	case source.Float:
		return fmt.Sprintf("%g(%#x)", math.Float32frombits(uint32(v)), v)
	case source.Double:
		return fmt.Sprintf("%g(%#x)", math.Float64frombits(v), v)
	case source.Half:
		return fmt.Sprintf("%g(%#x)", halfValue(v), v)
	}
	return fmt.Sprintf("%#x", v)
}

// distance returns the number of representable values between two results. All NaNs count as one
// value, and so do both zeros.
func distance(k source.Kind, x, y uint64) float64 {
	if x == y {
		return 0
	}
	order := func(v uint64, bits int) int64 {
		m := int64(v & (1<<(bits-1) - 1))
		if v>>(bits-1) != 0 {
			return -m
		}
		return m
	}
	apart := func(a, b int64) float64 { // NaNs are gone: the difference fits
		if d := float64(a) - float64(b); math.Abs(d) > 1e15 {
			return math.Abs(d)
		}
		return math.Abs(float64(a - b))
	}
	switch k {
	case source.Float:
		fx, fy := math.Float32frombits(uint32(x)), math.Float32frombits(uint32(y))
		if fx != fx || fy != fy {
			if fx != fx && fy != fy {
				return 0
			}
			return math.Inf(1)
		}
		return apart(order(x, 32), order(y, 32))
	case source.Double:
		fx, fy := math.Float64frombits(x), math.Float64frombits(y)
		if fx != fx || fy != fy {
			if fx != fx && fy != fy {
				return 0
			}
			return math.Inf(1)
		}
		return apart(order(x, 64), order(y, 64))
	case source.Half:
		fx, fy := halfValue(x), halfValue(y)
		if fx != fx && fy != fy {
			return 0
		}
		if fx == fx && fy == fy {
			return apart(order(x, 16), order(y, 16))
		}
	}
	return math.Inf(1)
}
