package exprs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/source"
)

// count is a number from the environment.
func count(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// runner launches cases on one device.
type runner struct {
	name string
	dev  *runtime.Device
	s    *runtime.Stream
	how  runtime.Implementation
}

func open(t *testing.T, cfg runtime.Config, name string, how runtime.Implementation) *runner {
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	dev, err := s.Open(context.Background(), name)
	if cfg.CPUKernels != "" && errors.Is(err, runtime.ErrUnsupported) {
		return nil // the processor or the binary lacks the instruction set
	}
	require.NoError(t, err)
	t.Cleanup(func() { dev.Close() })
	stream, err := dev.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { stream.Close() })
	return &runner{name: fmt.Sprint(name, " ", cfg.CPUKernels, " ", how), dev: dev, s: stream, how: how}
}

// run returns, for each case, the bytes of every output after the launch; nil for a case for which the device
// lacks a feature.
func (r *runner) run(t *testing.T, cases ...*kernels.Case) [][][]byte {
	var units []*source.Unit
	var able []int
	for i, c := range cases {
		if c.Needs.FP64 && !r.dev.Features().FP64 {
			continue
		}
		u, err := kernels.Unit(c.Family, r.dev.Features(), c.Defines...)
		require.NoError(t, err, c.Name())
		units, able = append(units, u), append(able, i)
	}
	programs, err := r.dev.Programs(context.Background(), units, runtime.ProgramOptions{Implementation: r.how})
	require.NoError(t, err)
	out := make([][][]byte, len(cases))
	for k, p := range programs {
		out[able[k]] = r.launch(t, cases[able[k]], units[k], p)
		require.NoError(t, p.Close())
	}
	return out
}

func (r *runner) launch(t *testing.T, c *kernels.Case, u *source.Unit, p *runtime.Program) (out [][]byte) {
	ctx := context.Background()
	k, err := p.Kernel(c.Kernel)
	require.NoError(t, err)
	args := make([]any, len(c.Args))
	out = make([][]byte, len(c.Args))
	for i := range c.Args {
		a := &c.Args[i]
		if a.Bytes != nil {
			args[i] = a.Bytes
			continue
		}
		typ, err := runtime.ParseType(a.Type)
		require.NoError(t, err)
		data := a.Data()
		if a.Dir == kernels.Out {
			data = make([]float64, a.Len)
		}
		raw := kernels.Encode(a.Type, data)
		if a.Dir == kernels.Value {
			args[i] = scalar(typ, raw)
			continue
		}
		b, err := r.dev.Alloc(typ, a.Len)
		require.NoError(t, err)
		defer b.Close()
		require.NoError(t, r.s.Write(ctx, b, 0, raw))
		args[i] = b
	}
	items, group, err := kernels.Geometry(u, c.Kernel, c.Sizes...)
	require.NoError(t, err)
	require.NoError(t, r.s.Launch(k, runtime.Grid{Items: items, Group: group}, args...), c.Name())
	for i := range c.Args {
		if a := &c.Args[i]; a.Dir == kernels.Out || a.Dir == kernels.InOut {
			out[i] = make([]byte, a.Len*kernels.SizeOf(a.Type))
			require.NoError(t, r.s.Read(ctx, args[i].(*runtime.Buffer), 0, out[i]), c.Name())
		}
	}
	return out
}

// compare runs cases on judge, the reference, and on other devices. It returns how many of all elements of outputs have
// no bound.
func compare(t *testing.T, judge *runner, cases []*kernels.Case, others ...*runner) (free, all int) {
	wants := judge.run(t, cases...)
	for _, r := range others {
		for i, got := range r.run(t, cases...) {
			if got == nil {
				continue
			}
			if argument, v := cases[i].Judge(wants[i], got); !v.OK {
				t.Errorf("%s: %s: argument %d: %v\n%s", r.name, cases[i].Name(), argument, v, cases[i].Defines[0].Value)
			}
		}
	}
	for k, c := range cases {
		if c.Bound == nil {
			continue
		}
		in := c.Inputs()
		for i, want := range wants[k] {
			if want == nil {
				continue
			}
			for _, b := range c.Bound(i, in, kernels.Decode(c.Args[i].Type, want)) {
				all++
				if math.IsInf(b, 1) {
					free++
				}
			}
		}
	}
	return free, all
}

// Random expressions have the same results, within the bound, on the vector machine of each instruction set, on
// the machine in Go and in float64. For some of them this is also checked for the text, compiled for the host
// and by OpenCL.
func TestRandom(t *testing.T) {
	total, compiled, seed := count("EXPRS", 1500), count("COMPILED", 12), uint64(count("SEED", 1))
	judge := open(t, runtime.Config{}, "cpu:reference", runtime.Native)
	var natives []*runner
	for _, set := range []string{"avx512", "avx2", "neon", "go"} {
		if r := open(t, runtime.Config{CPUKernels: set}, "cpu:0", runtime.Native); r != nil {
			natives = append(natives, r)
		}
	}
	free, all, ran := 0, 0, 0
	for i := 0; i < total; i += batch {
		cases := randomCases(seed, i, min(i+batch, total))
		ran += len(cases)
		a, b := compare(t, judge, cases, natives...)
		free, all = free+a, all+b
		if t.Failed() {
			return
		}
	}
	t.Logf("%d expressions; %d of %d elements have no bound", ran, free, all)
	require.Greater(t, ran, total*9/10)
	require.Less(t, free, all/5, "too many elements have no bound, so that nothing is checked")

	devices := []*runner{}
	s, err := runtime.Default()
	require.NoError(t, err)
	infos, err := s.Devices(context.Background())
	require.NoError(t, err)
	for _, d := range infos {
		if d.ID == "cpu:reference" || d.Fake || d.Simulated {
			continue
		}
		r := open(t, runtime.Config{}, d.ID, runtime.Portable)
		if err := r.compiles(); err != nil {
			t.Logf("%s compiles nothing: %v", d.ID, err)
			continue
		}
		devices = append(devices, r)
	}
	if strings.Contains(os.Getenv("CONCORD_REQUIRE"), "opencl") {
		require.Greater(t, len(devices), 1, "the host and OpenCL compile")
	}
	for _, name := range strings.Fields(os.Getenv("DEVICES")) { // simulated ones, which are listed by name alone
		devices = append(devices, open(t, runtime.Config{}, name, runtime.Portable))
	}
	for _, r := range devices { // side by side, since a compiler uses one processor at a time
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			judge := open(t, runtime.Config{}, "cpu:reference", runtime.Native)
			at := 1 // PoCL 3.1 corrupts its memory when it builds several programs at once
			if r.dev.Info().Backend == "cpu" {
				at = batch
			}
			for i := 0; i < compiled && !t.Failed(); i += at {
				compare(t, judge, randomCases(seed, i, min(i+at, compiled)), r)
			}
		})
	}
}

// batch is the number of cases whose programs are built together.
const batch = 20

// randomCases returns the cases that have the numbers lo to hi, less those that come to nothing: eight
// dimensions may need too many elements, and elements of an output may overlap.
func randomCases(seed uint64, lo, hi int) (cases []*kernels.Case) {
	for i := lo; i < hi; i++ {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		if c, err := randomCase(r, randomMap(r, 12), fmt.Sprint("expression ", i)); err == nil {
			cases = append(cases, &c)
		}
	}
	return cases
}

// compiles returns the reason why a device cannot compile a program, or nil if it can.
func (r *runner) compiles() error {
	m, err := expr.New(expr.Input(0, expr.F32))
	if err != nil {
		return err
	}
	u, err := m.Unit(r.dev.Features(), 0)
	if err != nil {
		return err
	}
	p, err := r.dev.Program(context.Background(), u, runtime.ProgramOptions{Implementation: runtime.Portable})
	if err != nil {
		return err
	}
	return p.Close()
}

func scalar(t expr.Type, raw []byte) any {
	x := kernels.Decode(t.String(), raw)[0]
	switch t {
	case expr.F32:
		return float32(x)
	case expr.F64:
		return x
	case expr.I8:
		return int8(x)
	case expr.I32:
		return int32(x)
	}
	return uint64(x)
}
