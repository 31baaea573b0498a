package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
)

// numbers is a buffer of n numbers: the element at i is of(i), or one of a few small ones if that is nil.
type numbers struct {
	typ runtime.Type
	n   int
	of  func(i int) float64
}

// large is a launch with more operations than a result may have that is judged as a whole.
type large struct {
	family, kernel string
	defines        []source.Define
	grid           []int // sizes of the grid, see kernels.Geometry
	out            int   // the buffer with results that is spoiled
	args           []any
}

func (l *large) String() string { return fmt.Sprint(l.family, " ", l.kernel, " ", l.grid, l.defines) }

// launch runs it on a device.
func (l *large) launch(t *testing.T, d *runtime.Device) {
	k, p, err := parity.Kernel(t.Context(), d, l.family, l.kernel, runtime.ProgramOptions{}, l.defines...)
	if err != nil && strings.Contains(err.Error(), "compiler") {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer p.Close()
	grid, err := parity.Grid(k, l.grid...)
	require.NoError(t, err)
	args := make([]any, len(l.args))
	for i, a := range l.args {
		data, ok := a.(numbers)
		if !ok {
			args[i] = a
			continue
		}
		list := make([]float64, data.n)
		for j := range list {
			if data.of != nil {
				list[j] = data.of(j)
			} else {
				list[j] = small(j)
			}
		}
		b, err := d.Alloc(data.typ, data.n)
		require.NoError(t, err)
		defer b.Close()
		require.NoError(t, d.Stream().Write(t.Context(), b, 0, kernels.Encode(data.typ.String(), list)))
		args[i] = b
	}
	require.NoError(t, d.Stream().Launch(k, grid, args...))
}

func small(i int) float64 { return float64(i * 7919 % 5) }

func constantly(v float64) func(int) float64 { return func(int) float64 { return v } }

// larges are launches of the families whose results are divided in ways of their own.
func larges() (list []*large) {
	type u = uint32
	define := func(name, value string) source.Define { return source.Define{Name: name, Value: value} }
	f32 := func(n int) numbers { return numbers{runtime.F32, n, nil} }
	u32 := func(n int) numbers { return numbers{runtime.U32, n, nil} }
	one := constantly(1)
	sums := func(i int) (sum float64) { // of 16 bytes of small
		for j := range 4 {
			sum += small(4*i + j)
		}
		return sum
	}
	for _, s := range [][3]int{{64, 272, 256}, {1, 4100, 512}} { // by rows, and by columns
		m, n, k := s[0], s[1], s[2]
		blocks, panels := k/kernels.GemmQBlock, (n+kernels.GemmQRows-1)/kernels.GemmQRows
		for _, form := range kernels.GemmQForms() {
			bits, factors := form[0], form[1]
			list = append(list, &large{"gemm_q", "gemm_q", []source.Define{define("BITS", fmt.Sprint(bits)),
				define("FACTORS", fmt.Sprint(factors))}, []int{m, n}, 5, []any{u32(m * k / 4),
				numbers{runtime.F32, m * blocks, one}, numbers{runtime.I32, 2 * m * blocks, sums},
				u32(panels * kernels.GemmQRows * blocks * bits),
				numbers{runtime.U16, panels * blocks * kernels.GemmQScales(factors), constantly(0x3c00)}, f32(m * n), u(m),
				u(n), u(k)}})
		}
		for out, defines := range map[runtime.Type][]source.Define{runtime.F32: nil, runtime.I32: {define("OUT", "i32")}} {
			list = append(list, &large{"w2a8", "w2a8", defines, []int{m, n}, 5,
				[]any{u32(m * k / 4), numbers{runtime.F32, m, one}, numbers{runtime.I32, m, nil}, u32(n * k / 16),
					numbers{runtime.F32, n, one}, numbers{out, m * n, nil}, u(m), u(n), u(k)}})
		}
	}
	const rows, n = 2048, 2048
	list = append(list,
		&large{"gemm_q", "quantize_blocks", nil, []int{rows * n / kernels.GemmQBlock}, 2, []any{f32(rows * n),
			numbers{runtime.I8, rows * n, nil}, f32(rows * n / 32), numbers{runtime.I32, rows * n / 16, nil}, u(rows), u(n),
			u(n)}},
		&large{"w2a8", "quantize_rows", nil, []int{rows}, 2, []any{f32(rows * n), numbers{runtime.I8, rows * n, nil},
			f32(rows), numbers{runtime.I32, rows, nil}, u(rows), u(n), u(n)}},
		&large{"reduce", "reduce_sum", nil, []int{rows}, 1, []any{f32(rows * n), f32(rows), u(rows), u(n), u(1)}},
		&large{"reduce", "reduce_argmax", nil, []int{rows}, 1, []any{f32(rows * n), u32(rows), u(rows), u(n), u(1)}},
		&large{"reduce", "reduce_max_columns", nil, []int{n}, 1, []any{f32(rows * n), f32(n), u(1), u(rows), u(n)}},
		&large{"scan", "scan_sum", nil, []int{64, 1}, 2, []any{f32(1 << 22), f32(0), f32(1 << 22), u(64), u(1 << 16), u(1)}},
		&large{"segment", "segment_add", nil, []int{512, n}, 3, []any{f32(rows * n),
			numbers{runtime.U32, rows, func(i int) float64 { return float64(i / 4) }},
			numbers{runtime.U32, rows, func(i int) float64 { return float64(rows - 1 - i) }}, f32(512 * n), u(rows), u(rows),
			u(512), u(n)}},
		&large{"sort_pairs", "sort_blocks", nil, []int{1, 1<<20 + 5}, 2, []any{f32(1<<20 + 5), u32(1<<20 + 5), f32(1<<20 + 5),
			u32(1<<20 + 5), u(1), u(1<<20 + 5)}},
		&large{"sort_pairs", "sort_merge", nil, []int{1, 1 << 20}, 3, []any{numbers{runtime.F32, 1 << 20,
			func(i int) float64 { return float64(i % 1024) }}, u32(1 << 20), f32(1 << 20), u32(1 << 20), u(1), u(1 << 20),
			u(1024)}},
		&large{"topk", "topk", nil, []int{rows}, 1, []any{f32(rows * n), f32(rows * 8), u32(rows * 8), u(rows), u(n), u(8)}},
		&large{"take_along", "take_along", nil, []int{1, 1 << 21, 1}, 2, []any{f32(1000), u32(1 << 21), f32(1 << 21), u(1),
			u(1000), u(1 << 21), u(1)}},
		&large{"gather", "gather_parts", nil, []int{4, 1 << 16, 8}, 2, []any{f32(4 * 1000 * 8), u32(1 << 16), f32(4 << 19),
			u(4), u(1000), u(1 << 16), u(8), uint64(8000), uint64(8)}},
		&large{"scatter", "scatter_runs", nil, []int{512, n}, 3, []any{f32(512 * n),
			numbers{runtime.U32, 512, func(i int) float64 { return float64(i / 4) }},
			numbers{runtime.U32, 512, func(i int) float64 { return float64(i) }}, f32(rows * n), u(rows), u(512), u(n)}},
		&large{"scatter", "scatter_add", nil, []int{512, n}, 2, []any{f32(512 * n), u32(512), f32(rows * n), u(rows), u(512),
			u(n)}},
		&large{"transpose", "transpose", nil, []int{1, rows, n}, 1, []any{f32(rows * n), f32(rows * n), u(rows), u(n)}},
	)
	return list
}

// TestLargeOfFamilies: of large launches of every family some rows are judged, and a wrong result is found.
func TestLargeOfFamilies(t *testing.T) {
	for _, l := range larges() {
		t.Run(l.String(), func(t *testing.T) {
			for _, spoiled := range []bool{false, true} {
				kernel := ""
				if spoiled {
					kernel = l.kernel
				}
				s := wrongAll(t, kernel, l.out)
				d := opened(t, s, "cpu:0")
				v, list := started(t, s, Options{Bytes: 1 << 28})
				l.launch(t, d)
				v.Wait()
				stats := v.Stats()
				assert.EqualValues(t, 1, stats.Divided, "%v", stats)
				if !spoiled {
					assert.Empty(t, *list)
				} else if assert.Len(t, *list, 1) {
					assert.Equal(t, l.out, (*list)[0].Arg)
					assert.Contains(t, (*list)[0].Kernel, l.kernel)
				}
			}
		})
	}
}

// TestTooLarge: one row of a reduction and one pair of runs are not divided, and counted.
func TestTooLarge(t *testing.T) {
	const n = 1 << 21
	f32, u32 := numbers{runtime.F32, n, nil}, numbers{runtime.U32, n, nil}
	sorted := numbers{runtime.F32, n, func(i int) float64 { return float64(i % (n / 2)) }}
	for _, l := range []*large{
		{"reduce", "reduce_sum", nil, []int{1}, 1, []any{f32, numbers{runtime.F32, 1, nil}, uint32(1), uint32(n), uint32(1)}},
		{"sort_pairs", "sort_merge", nil, []int{1, n}, 2, []any{sorted, u32, f32, u32, uint32(1), uint32(n), uint32(n / 2)}},
	} {
		s := wrong(t, "", 0, 0)
		d := opened(t, s, "cpu:0")
		v, _ := started(t, s, Options{Bytes: 1 << 28})
		l.launch(t, d)
		v.Wait()
		assert.EqualValues(t, 1, v.Stats().Large, "%v: %v", l, v)
	}
}

// TestOthersOpenOnce: the device that repeats launches is opened at the first of them, and closed with the Validator.
func TestOthersOpenOnce(t *testing.T) {
	s := wrong(t, "doubled", 1, 5)
	d := opened(t, s, "cpu:0")
	u, err := source.Parse(doubled, source.Options{Name: "doubled.cl"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	k, err := p.Kernel("doubled")
	require.NoError(t, err)
	right := spoiled(t, "other", func(*driver.Launch) (m driver.Memory, wrong bool) { return m, false })
	count := right.Config().Backends[0].(planted).uses
	v, list := started(t, s, Options{Device: "other:0"})
	v.cfg = right.Config()
	x, err := runtime.Upload(t.Context(), d, make([]float32, 64))
	require.NoError(t, err)
	defer x.Close()
	y, err := runtime.Upload(t.Context(), d, make([]float32, 64))
	require.NoError(t, err)
	defer y.Close()
	for range 3 {
		require.NoError(t, runtime.Write(t.Context(), y, make([]float32, 64)))
		require.NoError(t, d.Stream().Launch(k, runtime.Items(64).InGroups(32), x, y, runtime.Local(128), make([]byte, 16),
			uint32(60)))
		v.Wait()
	}
	assert.Len(t, *list, 3, "%v", v)
	assert.EqualValues(t, 1, count.opened.Load())
	assert.Zero(t, count.closed.Load())
	require.NoError(t, v.Close())
	assert.EqualValues(t, 1, count.closed.Load())
}
