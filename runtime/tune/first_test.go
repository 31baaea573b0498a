package tune

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"
)

// Choices of the backend nap: how many milliseconds its products take, which differ by more than what a process of the
// lowest priority waits for a busy processor. One of them is said to change rounding.
var (
	napPause = choice.New(choice.Choice{Name: "nap.pause", Doc: "milliseconds of a product in double precision",
		Why: "a test", Default: 72, Values: []int{2, 72}})
	napOrder = choice.New(choice.Choice{Name: "nap.order", Doc: "milliseconds of a product in single precision",
		Why: "a test", Default: 72, Values: []int{2, 72}, Rounds: true})
	napOther = choice.New(choice.Choice{Name: "nap.other", Doc: "milliseconds of a product of 50 rows, unless it is 0",
		Why: "a test", Values: []int{0, 1}})
	napShared = choice.New(choice.Choice{Name: "nap.shared", Doc: "milliseconds of a product of 70 rows, unless it is 0",
		Why: "a test", Values: []int{0, 1}})
)

// nap is the cpu backend under another name. Another process of this program has it, too.
type nap struct{ driver.Backend }

func (nap) Name() string                 { return "nap" }
func (nap) Describe() driver.Description { return driver.Description{Title: "Nap", Host: true} }

func (b nap) Probe(ctx context.Context, cfg *driver.Config) driver.Probe {
	p := b.Backend.Probe(ctx, cfg)
	p.Backend, p.Devices = "nap", p.Devices[:1]
	p.Devices[0].Backend, p.Devices[0].ID = "nap", "nap:0"
	return p
}

func (b nap) Open(ctx context.Context, i int, cfg *driver.Config) (driver.Device, error) {
	d, err := b.Backend.Open(ctx, i, cfg)
	if err != nil {
		return nil, err
	}
	return &napDevice{Device: d, Compiler: d.(driver.Compiler), Natives: d.(driver.Natives)}, nil
}

// napFree is what devices of the backend nap say of their free memory, unless it is 0.
var napFree atomic.Int64

type napDevice struct {
	driver.Device
	driver.Compiler
	driver.Natives
	set atomic.Pointer[choice.Set]
}

func (d *napDevice) Info() driver.Info {
	info := d.Device.Info()
	info.Backend, info.ID = "nap", "nap:0"
	if free := napFree.Load(); free > 0 {
		info.FreeMemory, info.FreeMemoryKnown = free, true
	}
	return info
}

func (d *napDevice) Choices() []*choice.Choice {
	return []*choice.Choice{napOrder, napOther, napPause, napShared}
}
func (d *napDevice) Choose(s *choice.Set) { d.set.Store(s) }
func (d *napDevice) TunedFor() string     { return "nap, 1 thread" }

func (d *napDevice) NewStream() (driver.Stream, error) {
	s, err := d.Device.NewStream()
	return &napStream{Stream: s, d: d}, err
}

type napStream struct {
	driver.Stream
	d *napDevice
}

func (s *napStream) Launch(l *driver.Launch) error {
	if l.Kernel.Info().Name == "gemm" {
		by := napOrder
		if l.Args[3].Size == 8 { // alpha
			by = napPause
		}
		took := s.d.set.Load().Of(by)
		for c, rows := range map[*choice.Choice]int64{napOther: 50, napShared: 70} {
			if v := s.d.set.Load().Of(c); v > 0 {
				took = v
				if l.Args[9].Memory.Size < rows*rows*4 { // the result
					took = 150
				}
			}
		}
		time.Sleep(time.Duration(took) * time.Millisecond)
	}
	return s.Stream.Launch(l)
}

func init() {
	for _, b := range driver.Backends() {
		if b.Name() == "cpu" {
			driver.Register(nap{b})
		}
	}
	Register(Subject{Name: "nap pause", Reads: []string{"nap.pause"}, Points: []Point{product(runtime.F64, 24, 24, 24),
		product(runtime.F64, 40, 40, 40)}})
	Register(Subject{Name: "nap order", Reads: []string{"nap.order"}, Points: []Point{product(runtime.F32, 100, 100,
		100)}})
	Register(Subject{Name: "nap other", Reads: []string{"nap.other"}, Points: []Point{product(runtime.F32, 50, 50, 50),
		product(runtime.F32, 18, 18, 18)}})
	Register(Subject{Name: "nap gain", Reads: []string{"nap.shared"}, Points: []Point{product(runtime.F32, 70, 70, 70)}})
	Register(Subject{Name: "nap loss", Reads: []string{"nap.shared"}, Points: []Point{product(runtime.F32, 17, 17, 17)}})
}

const (
	startsVariable = "CONCORD_TEST_TUNE_STARTS" // the file that has a line for each process that measures
	useVariable    = "CONCORD_TEST_TUNE_USE"    // the cache of a process that uses a device, and perhaps " and goes"
)

// lastFirst is the tuner of the session that was made last.
var lastFirst *background

// firstInTests makes this process what its environment says.
func firstInTests() {
	if os.Getenv(firstVariable) != "" {
		if f, err := os.OpenFile(os.Getenv(startsVariable), os.O_APPEND|os.O_WRONLY, 0); err == nil {
			fmt.Fprintln(f, os.Getpid())
			f.Close()
		}
	}
	FirstUse()
	driver.RegisterTuner(func(cfg *driver.Config) (driver.Tuner, error) {
		f, err := newBackground(cfg)
		if err != nil {
			return nil, err
		}
		f.time, f.pause, lastFirst = 2*time.Minute, 20*time.Millisecond, f
		return f, nil
	})
	if dir, goes := strings.CutSuffix(os.Getenv(useVariable), " and goes"); dir != "" {
		if err := useInAProcess(dir, goes); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// useInAProcess prints a result and waits until it is tuned, or ends as soon as that has begun.
func useInAProcess(dir string, goes bool) error {
	s, err := runtime.New(runtime.Config{CacheDir: dir, Tune: driver.TuneFirst, Validate: -1})
	if err != nil {
		return err
	}
	text, err := multiply(context.Background(), s, runtime.F64, 24)
	if err != nil {
		return err
	}
	fmt.Println(text)
	for lastFirst.atWork() {
		if goes && started(os.Getenv(startsVariable)) != nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return s.Close()
}

func (f *background) atWork() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.works
}

// started returns the processes that were started to measure.
func started(file string) (pids []int) {
	text, _ := os.ReadFile(file)
	for _, line := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(line); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// multiply launches a product on the device of backend nap, and returns its result as text.
func multiply(ctx context.Context, s *runtime.Session, t runtime.Type, n int) (string, error) {
	d, err := s.Open(ctx, "nap:0")
	if err != nil {
		return "", err
	}
	defer d.Close()
	k, p, err := parity.Kernel(ctx, d, "gemm", "gemm", runtime.ProgramOptions{}, source.Define{Name: "T",
		Value: t.String()})
	if err != nil {
		return "", err
	}
	defer p.Close()
	args := product(t, n, n, n).Args
	r := rand.New(rand.NewPCG(1, 2))
	var out *runtime.Buffer
	for i, a := range args {
		b, ok := a.(Buffer)
		if !ok {
			continue
		}
		numbers := make([]float64, b.Len)
		for j := range numbers {
			numbers[j] = r.Float64()
		}
		if out, err = d.Alloc(b.Type, b.Len); err != nil {
			return "", err
		}
		defer out.Close()
		if err := d.Stream().Write(ctx, out, 0, kernels.Encode(t.String(), numbers)); err != nil {
			return "", err
		}
		args[i] = out
	}
	grid, err := parity.Grid(k, n, n)
	if err != nil {
		return "", err
	}
	if err := d.Stream().Launch(k, grid, args...); err != nil {
		return "", err
	}
	bytes := make([]byte, n*n*t.Size())
	raw, err := out.As(runtime.U8)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	err = d.Stream().Read(ctx, raw, 0, bytes)
	return hex.EncodeToString(bytes), err
}

// firstDirs returns the place of a cache, and an empty list of the processes that measure.
func firstDirs(t *testing.T) (cache, starts string) {
	t.Helper()
	dir := t.TempDir()
	starts = filepath.Join(dir, "starts")
	require.NoError(t, os.WriteFile(starts, nil, 0o600))
	t.Setenv(startsVariable, starts)
	return filepath.Join(dir, "cache"), starts
}

// using returns a session and its device, which stay open until the test ends.
func using(t *testing.T, dir, tune string) (*runtime.Session, *runtime.Device) {
	t.Helper()
	s, err := runtime.New(runtime.Config{CacheDir: dir, Tune: tune, Validate: -1})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "nap:0")
	require.NoError(t, err)
	return s, d
}

// used launches a product, and returns its result once everything is tuned that was used.
func used(t *testing.T, s *runtime.Session, of runtime.Type, n int) string {
	t.Helper()
	got, err := multiply(t.Context(), s, of, n)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !lastFirst.atWork() }, 3*time.Minute, time.Millisecond)
	return got
}

// What is used is tuned once: the next session has the values and tunes nothing. No result changes by it.
func TestFirstUse(t *testing.T) {
	dir, starts := firstDirs(t)
	off, _ := using(t, "off", "off")
	usual, err := multiply(t.Context(), off, runtime.F32, 100)
	require.NoError(t, err)

	s, d := using(t, dir, driver.TuneFirst)
	used(t, s, runtime.F64, 24)
	assert.Equal(t, map[string]int{"nap.pause": 2}, d.Choices().Table().Values, "which keeps every bit, at once")
	assert.Equal(t, usual, used(t, s, runtime.F32, 100))
	assert.Equal(t, 72, d.Choices().Of(napOrder), "what may change bits is for the next process")
	assert.Equal(t, usual, used(t, s, runtime.F32, 100))
	assert.Len(t, started(starts), 2, "a process for each subject")

	next, d := using(t, dir, driver.TuneFirst)
	require.NotNil(t, d.Choices().Table())
	assert.Equal(t, map[string]int{"nap.pause": 2, "nap.order": 2}, d.Choices().Table().Values, "%v",
		d.Choices().Table().Trials)
	used(t, next, runtime.F64, 24)
	used(t, next, runtime.F32, 100)
	used(t, next, runtime.F32, 120)
	used(t, next, runtime.F32, 3)
	used(t, next, runtime.BF16, 24)
	assert.Len(t, started(starts), 2, "nothing is tuned twice, nor what no subject has")

	used(t, next, runtime.F64, 50) // near the other size of the subject
	assert.Len(t, started(starts), 3)
	sizes := map[string]bool{}
	for _, trial := range d.Choices().Table().Trials {
		for _, r := range trial.Rates {
			sizes[trial.Subject+" "+r.Name] = true
		}
	}
	assert.Equal(t, map[string]bool{"nap pause 24": true, "nap pause 40": true, "nap order 100": true}, sizes,
		"with the size that was used before")

	require.NoError(t, d.KeepTuned(t.Context(), nil))
	left, err := filepath.Glob(filepath.Join(dir, "tuned", "*.*"))
	require.NoError(t, err)
	assert.Empty(t, left, "the notes, too")
}

// Values that are better for the sizes that are used and worse for others are not kept.
func TestFirstUseHarms(t *testing.T) {
	dir, starts := firstDirs(t)
	s, d := using(t, dir, driver.TuneFirst)
	used(t, s, runtime.F32, 50)
	assert.Nil(t, d.Choices().Table())
	next, d := using(t, dir, driver.TuneFirst)
	assert.Nil(t, d.Choices().Table())
	used(t, next, runtime.F32, 50)
	assert.Len(t, started(starts), 1, "it is not tried again")
}

// Values that are better for a subject and worse for another one that reads the same choice are not kept, either.
func TestFirstUseHarmsAnother(t *testing.T) {
	dir, starts := firstDirs(t)
	s, d := using(t, dir, driver.TuneFirst)
	used(t, s, runtime.F32, 70)
	assert.Nil(t, d.Choices().Table())
	assert.Len(t, started(starts), 1)
}

// What was kept for other sizes stays, although the defaults are better for the size that is used.
func TestFirstUseKeepsOtherSizes(t *testing.T) {
	dir, starts := firstDirs(t)
	_, d := using(t, dir, "")
	table := d.Choices().New(map[string]int{"nap.other": 1})
	some := &Subject{Name: "nap other", Reads: []string{"nap.other"}}
	table.Trials = []choice.Trial{{Subject: "nap other", Values: table.Values, Final: true, Score: 72,
		Version: some.version(d.Choices().Choices()), Rates: []choice.Rate{{Name: "50", Ns: 1e6, Default: 72e6}}}}
	require.NoError(t, d.KeepTuned(t.Context(), table))
	s, d := using(t, dir, driver.TuneFirst)
	used(t, s, runtime.F32, 18)
	assert.Len(t, started(starts), 1)
	assert.Equal(t, map[string]int{"nap.other": 1}, d.Choices().Table().Values)
	assert.Equal(t, table.Trials, d.TuneTarget().Tuned().Trials)
}

// A gain that may be chance is none, and costs no more measurements.
func TestFirstUseByChance(t *testing.T) {
	tuned := &tuner{first: true, trials: []choice.Trial{{Score: 1.2}, {Score: 1.04, Final: true}}}
	assert.Equal(t, "1.04 times as fast as the defaults may be chance", tuned.chance(map[string]int{"nap.other": 1}))
	tuned.trials[1].Score = 1.06
	assert.Empty(t, tuned.chance(map[string]int{"nap.other": 1}))
}

// A program whose file is another one now is not started.
func TestFirstUseReplaced(t *testing.T) {
	dir, starts := firstDirs(t)
	other := filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(other, nil, 0o700))
	was := beganAs
	defer func() { beganAs = was }()
	var err error
	beganAs, err = os.Stat(other)
	require.NoError(t, err)
	s, _ := using(t, dir, driver.TuneFirst)
	used(t, s, runtime.F64, 24)
	assert.Empty(t, started(starts))
	beganAs = was
	s, d := using(t, dir, driver.TuneFirst)
	used(t, s, runtime.F64, 24)
	assert.Equal(t, 2, d.Choices().Of(napPause), "nothing says that it was tried")
}

// The file of a program is compared with the one that runs, and with what it was.
func TestSameProgram(t *testing.T) {
	dir := t.TempDir()
	self, other, link := filepath.Join(dir, "self"), filepath.Join(dir, "other"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(self, []byte("a"), 0o700))
	require.NoError(t, os.WriteFile(other, []byte("b"), 0o700))
	require.NoError(t, os.Symlink(self, link))
	began, err := os.Stat(self)
	require.NoError(t, err)
	require.NoError(t, sameProgram(self, link, began))
	require.NoError(t, sameProgram(self, filepath.Join(dir, "none"), nil), "nothing is known")
	require.ErrorIs(t, sameProgram(self, other, nil), errReplaced)
	require.ErrorIs(t, sameProgram(other, filepath.Join(dir, "none"), began), errReplaced)
	require.NoError(t, os.WriteFile(self, []byte("changed"), 0o700))
	require.ErrorIs(t, sameProgram(self, self, began), errReplaced)
	require.NoError(t, os.Remove(self))
	err = sameProgram(self, other, began)
	require.ErrorIs(t, err, errReplaced)
	require.ErrorIs(t, err, runtime.ErrUnsupported)
}

// Sizes that need more than a quarter of the free memory are left out.
func TestSpares(t *testing.T) {
	s, d := using(t, "off", "off")
	defer napFree.Store(0)
	measure := func(free int64) (a answer) {
		m := &measurement{session: s, dev: d, doing: func(string) error { return nil }}
		m.free()
		defer m.free()
		m.request = request{Subject: "nap pause", For: d.Choices().TunedFor(), Points: []string{"24", "40"}, Seconds: 1e-9,
			Values: map[string]int{"nap.pause": 2}, Spares: true}
		napFree.Store(free)
		require.NoError(t, m.run(t.Context(), &a))
		assert.True(t, a.answers(m.request))
		return a
	}
	bytes := func(n int64) int64 { return 2 * 3 * n * n * 8 } // with copies
	assert.Len(t, measure(4*(bytes(24)+bytes(40))).Rates, 2)
	// The device says the same with the buffers of the first one, which count as free.
	assert.Len(t, measure(4*bytes(40)-bytes(24)).Rates, 2, "the first one makes room")
	a := measure(4*bytes(40) - bytes(24) - 8)
	assert.Len(t, a.Rates, 1)
	assert.Equal(t, []string{"40"}, a.Left)
	a = measure(4*bytes(24) - 8)
	assert.Empty(t, a.Rates)
	assert.Equal(t, []string{"24", "40"}, a.Left)
}

// A table that was measured otherwise counts, and where nothing can be kept, nothing is tuned.
func TestFirstUseUnneeded(t *testing.T) {
	dir, starts := firstDirs(t)
	_, d := using(t, dir, "")
	table := d.Choices().New(map[string]int{"nap.pause": 2})
	require.NoError(t, d.KeepTuned(t.Context(), table))
	s, d := using(t, dir, driver.TuneFirst)
	used(t, s, runtime.F64, 24)
	assert.Equal(t, table, d.Choices().Table(), "it has a value for the subject")

	pinned := filepath.Join(t.TempDir(), "pinned.json")
	f, err := os.Create(pinned)
	require.NoError(t, err)
	require.NoError(t, d.Choices().New(map[string]int{"nap.order": 2}).Write(f))
	require.NoError(t, f.Close())
	for _, c := range []struct{ dir, tune string }{{"off", driver.TuneFirst}, {dir, "off"}, {dir, pinned}, {dir, ""}} {
		s, _ := using(t, c.dir, c.tune)
		used(t, s, runtime.F32, 100)
	}
	assert.Empty(t, started(starts))

	cfg := plantedConfig()
	cfg.Tune, cfg.Strict = driver.TuneFirst, true
	_, err = runtime.New(cfg)
	require.ErrorIs(t, err, runtime.ErrUnsupported)
	assert.ErrorContains(t, err, "backends of its own")
}

// A subject whose choices have changed since is tuned again, and no other.
func TestTried(t *testing.T) {
	list := []*choice.Choice{napOrder, napOther, napPause}
	s := &Subject{Name: "nap pause", Reads: []string{"nap.pause"}}
	var none tried
	assert.False(t, none.has(s, "24", list))
	some := none.with(s, "24", list).with(&Subject{Name: "planted", Reads: []string{"planted"}}, "1", list)
	assert.True(t, some.has(s, "24", list))
	assert.False(t, some.has(s, "40", list))
	assert.Equal(t, []string{"24", "40"}, some.with(s, "40", list).points(s))
	changed := *napPause
	changed.Values = []int{2, 4, 24}
	now := []*choice.Choice{napOrder, napOther, &changed}
	assert.False(t, some.has(s, "24", now))
	assert.Equal(t, []string{"40"}, some.with(s, "40", now).points(s))
	assert.Len(t, some.with(s, "40", now), 2)

	dir := filepath.Join(t.TempDir(), "tuned")
	assert.Nil(t, readTried(dir, "notes"))
	require.NoError(t, some.write(dir, "notes"))
	assert.Equal(t, some, readTried(dir, "notes"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), []byte("[]"), 0o600))
	assert.Nil(t, readTried(dir, "notes"), "damaged")
}

// The point of a launch is the nearest one of equal types and form.
func TestNearest(t *testing.T) {
	native := driver.KernelInfo{Native: true}
	list := slices.DeleteFunc(slices.Clone(subjects), func(s Subject) bool {
		return strings.HasPrefix(s.Name, "nap") || strings.HasPrefix(s.Name, "planted")
	})
	type defines = []source.Define
	for _, c := range []struct {
		family  string
		defines defines
		args    []any
		is      driver.KernelInfo
		want    string
	}{
		{"gemm", nil, product(runtime.F32, 1000, 900, 1100).Args, native, "gemm f32 1024"},
		{"gemm", defines{{Name: "T", Value: "f64"}, {Name: "TRANS_B", Value: "1"}},
			product(runtime.F64, 100, 100, 100).Args, native, "gemm f64 128"},
		{"gemm", nil, product(runtime.F32, 1000, 900, 1100).Args, driver.KernelInfo{}, "portable gemm f32 1024"},
		{"gemm", nil, product(runtime.F32, 3, 4096, 2048).Args, native, "gemm of few rows 4x4096x4096"},
		{"gemm", nil, product(runtime.F32, 2, 2, 2).Args, native, ""},
		{"gemm", defines{{Name: "T", Value: "f16"}}, product(runtime.F16, 64, 64, 64).Args, native, "gemm f16 64"},
		{"gemm", defines{{Name: "T", Value: "bf16"}}, product(runtime.F16, 64, 64, 64).Args, native, ""},
		{"gemm_bias", nil, product(runtime.F32, 64, 64, 64).Args, native, ""},
		{"conv2d", nil, image{64, 50, 64, 3, 1, 1, 1, 1}.convolution().Args, native,
			"conv2d by Winograd's method 64x56x64 by 3x3"},
		{"conv2d", nil, image{256, 14, 256, 3, 1, 0, 1, 32}.convolution().Args, native,
			"conv2d f32 128x28x128 by 3x3 groups 32"},
		{"conv2d", nil, image{8192, 14, 256, 3, 1, 1, 1, 1}.convolution().Args, native, ""},
	} {
		unit, err := kernels.Unit(c.family, &source.Features{FP64: true, FP16: true}, c.defines...)
		require.NoError(t, err)
		l := &driver.Launch{Kernel: informed{nil, c.is}}
		for _, a := range c.args {
			arg := driver.Arg{Kind: driver.ArgMemory}
			if v, ok := a.(uint32); ok {
				arg = driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: 4}
				l.Data = binary.LittleEndian.AppendUint32(l.Data, v)
			}
			l.Args = append(l.Args, arg)
		}
		got := ""
		if s, p := nearestPoint(list, unit, c.family, l); s != nil {
			got = s.Name + " " + p.Name
		}
		assert.Equal(t, c.want, got, "%s %v", c.family, c.args)
	}
	l := &driver.Launch{Data: binary.NativeEndian.AppendUint64(nil, 3),
		Args: []driver.Arg{{Kind: driver.ArgValue, Size: 8}}}
	large, small := Point{Args: []any{uint64(1 << 16)}}, Point{Args: []any{uint64(3)}}
	assert.Equal(t, float64(infinite), large.distance(l), "sizes of 64 bits")
	assert.Zero(t, small.distance(l))
}

// What was measured with other choices of a subject does not count.
func TestTuned(t *testing.T) {
	all := choice.All()
	list := Subjects(all)
	s := &list[slices.IndexFunc(list, func(s Subject) bool { return s.Name == "gemm f32" })]
	table := &choice.Table{Trials: []choice.Trial{{Subject: s.Name, Version: "another",
		Rates: []choice.Rate{{Name: "64"}}}}}
	assert.False(t, s.tuned(table, "64", all))
	table.Trials[0].Version = s.version(all)
	assert.True(t, s.tuned(table, "64", all))
	assert.False(t, s.tuned(table, "128", all))
}

// informed is a kernel that only says what it is.
type informed struct {
	driver.Kernel
	info driver.KernelInfo
}

func (i informed) Info() driver.KernelInfo { return i.info }
