package validate

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tensor"
)

// started is Start of a Validator that checks every launch and collects differences.
func started(t testing.TB, s *runtime.Session, o Options) (*Validator, *[]Difference) {
	t.Helper()
	var mu sync.Mutex
	list := new([]Difference)
	if o.Report == nil {
		o.Report = func(d Difference) {
			mu.Lock()
			defer mu.Unlock()
			*list = append(*list, d)
		}
	}
	if o.Every == 0 {
		o.Every = 1
	}
	if o.Share == 0 {
		o.Share = 1
	}
	o.Seed = 1
	v, err := Start(s, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, v.Close()) })
	return v, list
}

// TestCatalog: the cases of all families, which the devices are known to compute, have no difference, whole and in
// rows.
func TestCatalog(t *testing.T) {
	for name, most := range map[string]float64{"whole": math.Inf(1), "divided": 16} {
		t.Run(name, func(t *testing.T) {
			s := wrong(t, "", 0, 0)
			v, list := started(t, s, Options{})
			v.most = most
			n := 0
			results, err := parity.Run(t.Context(), parity.Options{Session: s, Devices: []string{"cpu:0"},
				Keep: func(c *kernels.Case) bool {
					n++
					return n%23 == 0 || !testing.Short() && n%3 == 0
				},
				Forms:  func(device string) bool { return device == "cpu:0" },
				Before: func(parity.Result) { v.Wait() },
			})
			require.NoError(t, err)
			v.Wait()
			for _, r := range results {
				require.Contains(t, []string{parity.Pass, parity.Skip}, r.Verdict, "%+v", r)
			}
			for _, d := range *list {
				assert.Fail(t, d.String())
			}
			stats := v.Stats()
			t.Log(stats)
			assert.Greater(t, stats.Checked, int64(len(results)))
			assert.Zero(t, stats.Failed, stats.Why)
			assert.Less(t, stats.Unjudged, stats.Checked/4)
			assert.Equal(t, name == "divided", stats.Divided > stats.Checked/4)
		})
	}
}

// saxpy returns the kernel, with x and y of n elements.
func saxpy(t testing.TB, d *runtime.Device, n int) (k *runtime.Kernel, x, y *runtime.Buffer) {
	t.Helper()
	k, p, err := parity.Kernel(t.Context(), d, "saxpy", "saxpy", runtime.ProgramOptions{})
	require.NoError(t, err)
	numbers := make([]float32, n)
	for i := range numbers {
		numbers[i] = float32(i%17) / 4
	}
	x, err = runtime.Upload(t.Context(), d, numbers)
	require.NoError(t, err)
	y, err = runtime.Upload(t.Context(), d, numbers)
	require.NoError(t, err)
	t.Cleanup(func() { x.Close(); y.Close(); p.Close() })
	return k, x, y
}

// TestFound: one in 1,000 finds a kernel that is wrong within 5,000 launches, with a file that repeats the difference.
func TestFound(t *testing.T) {
	s := wrong(t, "saxpy", 2, 77)
	d := opened(t, s, "cpu:0")
	dir := filepath.Join(t.TempDir(), "new", "directory")
	v, list := started(t, s, Options{Every: 1000, Share: usualShare, Dir: dir})
	k, x, y := saxpy(t, d, 300)
	for range 5000 {
		require.NoError(t, d.Stream().Launch(k, runtime.Items(320), float32(0.5), x, y, uint64(300)))
	}
	v.Wait()
	require.NotEmpty(t, *list, "%v", v)
	first := (*list)[0]
	assert.Equal(t, "saxpy", first.Kernel)
	assert.Equal(t, []string{"0.5", "f32[300]", "f32[300]", "300"}, first.Args)
	assert.Equal(t, []string{"T=f32"}, first.Defines)
	assert.Equal(t, 2, first.Arg)
	assert.Equal(t, 77, first.First)
	assert.Equal(t, 77, first.Verdict.At)
	assert.Equal(t, 4096., first.Verdict.Got)
	assert.Equal(t, 320, first.Grid.Items[0])
	require.NoError(t, first.FileErr)
	require.Equal(t, dir, filepath.Dir(first.File))
	assert.Contains(t, first.String(), "the first element 77")
	assert.Contains(t, v.String(), "5000 launches, ")

	name, err := Device(first.File)
	require.NoError(t, err)
	assert.Equal(t, "cpu:0", name)
	again, err := Repeat(t.Context(), d, first.File)
	require.NoError(t, err)
	assert.Equal(t, first.Result, again.Result)
	assert.Equal(t, first.Args, again.Args)
	right, err := Repeat(t.Context(), opened(t, wrong(t, "", 0, 0), "cpu:0"), first.File)
	require.NoError(t, err)
	assert.True(t, right.Verdict.OK, "%v", right)
}

// TestRowsOfProducts: in a large product, a wrong row is found in rows at random, and its place is that in the whole.
func TestRowsOfProducts(t *testing.T) {
	const m, n, k = 300, 200, 150
	s := wrong(t, "gemm", 9, (m-1)*n+13)
	d := opened(t, s, "cpu:0")
	v, list := started(t, s, Options{Dir: t.TempDir()})
	f, p, err := parity.Kernel(t.Context(), d, "gemm", "gemm", runtime.ProgramOptions{})
	require.NoError(t, err)
	defer p.Close()
	grid, err := parity.Grid(f, m, n)
	require.NoError(t, err)
	a, err := runtime.Upload(t.Context(), d, make([]float32, m*k))
	require.NoError(t, err)
	defer a.Close()
	b, err := runtime.Upload(t.Context(), d, make([]float32, k*n))
	require.NoError(t, err)
	defer b.Close()
	c, err := runtime.Alloc[float32](d, m*n)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, d.Stream().Launch(f, grid, uint32(m), uint32(n), uint32(k), float32(1), a, uint32(k), b, uint32(n),
		float32(0), c, uint32(n)))
	v.Wait()
	require.Len(t, *list, 1, "%v", v)
	found := (*list)[0]
	assert.Less(t, len(found.Rows), m/2)
	assert.Contains(t, found.Rows, m-1, "the last row is always among them")
	assert.Equal(t, (m-1)*n+13, found.First)
	again, err := Repeat(t.Context(), d, found.File)
	require.NoError(t, err)
	assert.Equal(t, found.Result, again.Result, "the same rows")
}

// trained returns the parameters of a small network after its training.
func trained(t testing.TB, d *runtime.Device) []float32 {
	t.Helper()
	ctx := t.Context()
	s := tensor.NewScope(d)
	defer s.Close()
	x, y := make([]float32, 64*8), make([]float32, 64*2)
	for i := range x {
		x[i] = float32(i*7919%31)/31 - 0.5
	}
	for i := range 64 {
		y[2*i+i%2] = 1
	}
	m, err := nn.Build(ctx, s, 1, nn.Spec{Type: tensor.F32, Shape: []int{8}}, nn.Dense{Out: 16, Act: nn.ReLU},
		nn.Dense{Out: 2})
	require.NoError(t, err)
	tr, err := nn.NewTrainer(m, nn.Config{BatchSize: 16, Epochs: 5, Loss: nn.CrossEntropy{}})
	require.NoError(t, err)
	defer tr.Close()
	_, err = tr.Fit(ctx, nn.Data{X: tensor.From(s, x, 64, 8), Y: tensor.From(s, y, 64, 2)})
	require.NoError(t, err)
	var all []float32
	for _, p := range m.Params() {
		numbers, err := tensor.Read[float32](ctx, m.Value(p.Name))
		require.NoError(t, err)
		all = append(all, numbers...)
	}
	return all
}

// TestBelowNetworks: launches of a training's graphs are checked, and its results are the same bits with and without.
func TestBelowNetworks(t *testing.T) {
	s := wrong(t, "", 0, 0)
	d := opened(t, s, "cpu:0")
	before := trained(t, d)
	v, list := started(t, s, Options{})
	after := trained(t, d)
	v.Wait()
	assert.Equal(t, before, after)
	for _, d := range *list {
		assert.Fail(t, d.String())
	}
	stats := v.Stats()
	t.Log(stats)
	assert.Greater(t, stats.Checked, int64(10))
	assert.Zero(t, stats.Failed, stats.Why)
	require.NoError(t, v.Close())

	s = wrong(t, "map", 1, 0)
	d = opened(t, s, "cpu:0")
	v, list = started(t, s, Options{Every: 1000})
	trained(t, d)
	v.Wait()
	assert.NotEmpty(t, *list, "%v", v)
}

// doubled is a kernel that is not of the catalog, with a second buffer in place and local memory.
const doubled = `kernel void doubled(global const float *x, global float *y, local float *l, float4 by, uint n) {
  uint i = get_global_id(0);
  l[get_local_id(0)] = x[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n) y[i] = l[get_local_id(0)] * by.y + y[i];
}`

// TestElsewhere: a kernel of the program is repeated on another device, here on one without the fault, and never on its
// own.
func TestElsewhere(t *testing.T) {
	s := wrong(t, "doubled", 1, 5)
	d := opened(t, s, "cpu:0")
	u, err := source.Parse(doubled, source.Options{Name: "doubled.cl"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	if err != nil && strings.Contains(err.Error(), "compiler") {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer p.Close()
	k, err := p.Kernel("doubled")
	require.NoError(t, err)
	right := spoiled(t, "other", func(*driver.Launch) (m driver.Memory, wrong bool) { return m, false })
	v, list := started(t, s, Options{Device: "cpu:0"})
	whole, err := runtime.Upload(t.Context(), d, make([]float32, 100))
	require.NoError(t, err)
	defer whole.Close()
	x, err := whole.Slice(0, 64)
	require.NoError(t, err)
	defer x.Close()
	y, err := whole.Slice(36, 64)
	require.NoError(t, err)
	defer y.Close()
	by := make([]byte, 16)
	by[7] = 0x40 // 2
	launch := func() error {
		return d.Stream().Launch(k, runtime.Items(64).InGroups(32), x, y, runtime.Local(128), by, uint32(60))
	}
	require.NoError(t, launch())
	v.Wait()
	assert.Empty(t, *list)
	assert.Equal(t, int64(1), v.Stats().Unjudged, "it is not compared with itself: %v", v)

	require.NoError(t, runtime.Write(t.Context(), whole, make([]float32, 100)))
	v, list = started(t, s, Options{Dir: t.TempDir(), Device: "other:0"})
	v.cfg = right.Config()
	require.NoError(t, launch())
	v.Wait()
	require.Len(t, *list, 1, "%v", v)
	found := (*list)[0]
	assert.Equal(t, "doubled", found.Kernel)
	assert.Equal(t, "other:0", found.Reference)
	assert.Equal(t, 5, found.First)
	assert.Equal(t, []string{"f32[64]", "f32[64]", "128 bytes of local memory", "00000000000000400000000000000000", "60"},
		found.Args)
	again, err := Repeat(t.Context(), opened(t, right, "other:0"), found.File)
	require.ErrorIs(t, err, errUnjudged, "there is no other device: %v", again)

	v, list = started(t, s, Options{})
	require.NoError(t, launch())
	v.Wait()
	assert.Empty(t, *list)
	assert.Equal(t, int64(1), v.Stats().Unjudged+v.Stats().Checked, "%v", v)
}

// TestAttacks: whatever a program does with its buffers and contexts, nothing is a difference, and nothing is left.
func TestAttacks(t *testing.T) {
	s := wrong(t, "", 0, 0)
	d := opened(t, s, "cpu:0")
	v, list := started(t, s, Options{Bytes: 1 << 20})
	k, x, y := saxpy(t, d, 300)
	run := func(a float32, x, y *runtime.Buffer, n int) {
		require.NoError(t, d.Stream().Launch(k, runtime.Items(320), a, x, y, uint64(n)))
	}
	run(1, x, y, 0)
	empty, err := runtime.Alloc[float32](d, 0)
	require.NoError(t, err)
	run(1, empty, empty, 0)
	run(1, y, y, 300) // the catalog allows no overlap, and the CPU and the reference agree
	odd := make([]float32, 300)
	for i := range odd {
		odd[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), 0, float32(math.Inf(-1)), 1e38}[i%5]
	}
	require.NoError(t, runtime.Write(t.Context(), x, odd))
	run(2, x, y, 300)
	run(float32(math.NaN()), x, y, 300)
	require.Error(t, d.Stream().Launch(k, runtime.Items(320), 1.5, x, y, uint64(300)), "a wrong type")
	require.Error(t, d.Stream().Launch(k, runtime.Items(320), float32(1)))
	require.Error(t, d.Stream().Launch(k, runtime.Items(320), nil, nil, nil, nil, nil, nil, nil))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			stream, err := d.NewStream()
			if !assert.NoError(t, err) {
				return
			}
			for range 50 {
				x, err1 := runtime.Upload(t.Context(), d, odd)
				y, err2 := runtime.Upload(t.Context(), d, odd)
				assert.NoError(t, err1)
				assert.NoError(t, err2)
				assert.NoError(t, stream.Launch(k, runtime.Items(320), float32(2), x, y, uint64(300)))
				x.Close()
				y.Close()
			}
			assert.NoError(t, stream.Close())
		})
	}
	group.Wait()
	v.Wait()
	for _, d := range *list {
		assert.Fail(t, d.String())
	}
	stats := v.Stats()
	t.Log(stats)
	assert.Equal(t, int64(5+3+400), stats.Launches)
	assert.Positive(t, stats.Checked)
	assert.Equal(t, int64(3), stats.Failed, "launches that were refused")
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	require.NoError(t, empty.Close())
	require.NoError(t, d.Sync(t.Context()))
	assert.Zero(t, d.Stats().LiveBuffers)

	large, err := runtime.Alloc[float32](d, 1<<20)
	require.NoError(t, err)
	defer large.Close()
	run(2, large, large, 1)
	assert.Equal(t, int64(1), v.Stats().Large)
}

// TestReportPanics: a report that panics, a directory that cannot be made, and too many files end nothing.
func TestReportPanics(t *testing.T) {
	s := wrong(t, "saxpy", 2, 3)
	d := opened(t, s, "cpu:0")
	k, x, y := saxpy(t, d, 300)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	launch := func(v *Validator) Stats {
		for range 5 {
			require.NoError(t, d.Stream().Launch(k, runtime.Items(320), float32(0.5), x, y, uint64(300)))
			v.Wait()
		}
		return v.Stats()
	}
	v, _ := started(t, s, Options{Dir: file, Report: func(d Difference) {
		assert.Error(t, d.FileErr)
		assert.Empty(t, d.File)
		panic("report")
	}})
	stats := launch(v)
	assert.Equal(t, int64(5), stats.Differences)
	assert.Equal(t, int64(5), stats.Panics)
	assert.Zero(t, stats.Files)
	require.NoError(t, v.Close())

	dir := t.TempDir()
	v, list := started(t, s, Options{Dir: dir, Files: 2})
	assert.Equal(t, int64(2), launch(v).Files)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2)
	assert.ErrorContains(t, (*list)[4].FileErr, "2 files already")
	v, list = started(t, s, Options{Ignore: []string{"saxpy"}})
	assert.Zero(t, launch(v).Checked)
	assert.Empty(t, *list)

	if _, err := os.Stat("/dev/full"); err == nil {
		full := filepath.Join(dir, "full")
		require.NoError(t, os.Mkdir(full, 0o500))
		if os.Geteuid() != 0 { // the superuser may write there
			v, list = started(t, s, Options{Dir: full})
			assert.Zero(t, launch(v).Files)
			assert.Error(t, (*list)[0].FileErr)
		}
	}
}

// TestDamagedFiles: whatever byte is damaged, Repeat returns an error or a verdict.
func TestDamagedFiles(t *testing.T) {
	s := wrong(t, "saxpy", 2, 3)
	d := opened(t, s, "cpu:0")
	v, list := started(t, s, Options{Dir: t.TempDir()})
	k, x, y := saxpy(t, d, 30)
	require.NoError(t, d.Stream().Launch(k, runtime.Items(64), float32(0.5), x, y, uint64(30)))
	require.NoError(t, v.Close())
	require.Len(t, *list, 1)
	whole, err := os.ReadFile((*list)[0].File)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "damaged.zip")
	try := func(b []byte) error {
		require.NoError(t, os.WriteFile(name, b, 0o600))
		_, err := Repeat(t.Context(), d, name)
		return err
	}
	require.NoError(t, try(whole))
	for n := 0; n < len(whole); n += 97 {
		require.ErrorIs(t, try(whole[:n]), driver.ErrCorrupt, "%d bytes", n)
	}
	for i := 0; i < len(whole); i += 13 {
		b := append([]byte(nil), whole...)
		b[i] ^= 0x41
		_ = try(b)
	}
	for _, text := range []string{`"region": 1`, `"bytes": 120`, `"dim": 1`, `"kernel": "saxpy"`, `"offset"`} {
		assert.Contains(t, string(whole)+`"offset"`, text)
	}
	_, err = Repeat(t.Context(), d, filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = Repeat(t.Context(), nil, name)
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

// TestEnvironment: CONCORD_VALIDATE validates a session, with files.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CONCORD_VALIDATE", "10,"+dir)
	cfg := wrong(t, "saxpy", 2, 3).Config()
	cfg.Validate = 0
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	assert.Equal(t, 10, s.Config().Validate)
	assert.Equal(t, dir, s.Config().ValidateDir)
	d := opened(t, s, "cpu:0")
	k, x, y := saxpy(t, d, 30)
	require.NoError(t, d.Stream().Launch(k, runtime.Items(64), float32(0.5), x, y, uint64(30)))
	require.NoError(t, s.Close())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 1)
	t.Setenv("CONCORD_VALIDATE", "0")
	_, err = runtime.New(runtime.Config{})
	assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
}

// TestBudget: launches that are due are skipped and counted while the share of time is used up, and checked afterwards.
func TestBudget(t *testing.T) {
	s := wrong(t, "", 0, 0)
	d := opened(t, s, "cpu:0")
	v, _ := started(t, s, Options{Share: 0.5})
	k, x, y := saxpy(t, d, 30)
	launch := func() Stats {
		for range 20 {
			require.NoError(t, d.Stream().Launch(k, runtime.Items(64), float32(0.5), x, y, uint64(30)))
			v.Wait()
		}
		return v.Stats()
	}
	set := func(credit time.Duration) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.credit = credit
	}
	set(-time.Hour)
	stats := launch()
	assert.Equal(t, int64(20), stats.Budget, "%v", v)
	assert.Zero(t, stats.Checked)
	assert.Zero(t, v.bytes)
	set(time.Hour)
	assert.Equal(t, int64(20), launch().Checked, "%v", v)
	assert.LessOrEqual(t, v.credit, saved, "no more is saved up")
}
