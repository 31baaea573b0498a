package tune

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/internal/group"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
)

// What a device does with the values of way.
const (
	usualWay = iota
	wrongWay
	endlessWay
	crashWay
	lostWay
	slowWay
	brokenWay // all that follows on the stream fails, too
	fastWay
)

var (
	way = choice.New(choice.Choice{Name: "planted.way", Doc: "what goes wrong", Why: "a test", Default: usualWay,
		Values: []int{usualWay, wrongWay, endlessWay, crashWay, lostWay, slowWay, brokenWay, fastWay}})
	pause = choice.New(choice.Choice{Name: "planted.pause", Doc: "milliseconds of a launch", Why: "a test", Default: 16,
		Values: []int{8, 16, 24}})
)

func init() {
	Register(Subject{Name: "planted way", Reads: []string{"planted"}, Points: []Point{product(runtime.F32, 24, 24, 24),
		product(runtime.F32, 40, 40, 40)}})
}

// planted is the cpu backend with choices that go wrong.
type planted struct{ driver.Backend }

func (b planted) Describe() driver.Description { return driver.Describe(b.Backend) }

func (b planted) Open(ctx context.Context, i int, cfg *driver.Config) (driver.Device, error) {
	d, err := b.Backend.Open(ctx, i, cfg)
	if err != nil {
		return nil, err
	}
	return &plantedDevice{Device: d, Compiler: d.(driver.Compiler), Natives: d.(driver.Natives)}, nil
}

type plantedDevice struct {
	driver.Device
	driver.Compiler
	driver.Natives
	set   atomic.Pointer[choice.Set]
	wrong atomic.Bool // maps compute wrongly
}

func (d *plantedDevice) Choices() []*choice.Choice { return []*choice.Choice{pause, way} }
func (d *plantedDevice) Choose(s *choice.Set)      { d.set.Store(s) }
func (d *plantedDevice) TunedFor() string          { return "planted, 1 thread" }

func (d *plantedDevice) NewStream() (driver.Stream, error) {
	s, err := d.Device.NewStream()
	return &plantedStream{Stream: s, d: d}, err
}

type plantedStream struct {
	driver.Stream
	d      *plantedDevice
	broken atomic.Bool
}

func (s *plantedStream) Launch(l *driver.Launch) error {
	if l.Kernel.Info().Name != "gemm" {
		if err := s.Stream.Launch(l); err != nil || !s.d.wrong.Load() {
			return err
		}
		m := l.Args[1].Memory
		m.Size = 4
		return s.Fill(m, []byte{0, 0, 0x80, 0x45})
	}
	took := time.Duration(s.d.set.Load().Of(pause)) * time.Millisecond
	switch s.d.set.Load().Of(way) {
	case endlessWay:
		select {}
	case crashWay:
		_ = (*(*int)(nil)) //nolint:govet // a crash is what is wanted
	case lostWay:
		return fmt.Errorf("the bus fell off: %w", driver.ErrDeviceLost)
	case brokenWay:
		s.broken.Store(true)
	case slowWay:
		took *= 8
	case fastWay:
		took /= 4
	}
	if s.broken.Load() {
		return fmt.Errorf("the stream is broken: %w", driver.ErrInvalidArgument)
	}
	time.Sleep(took)
	if err := s.Stream.Launch(l); err != nil || s.d.set.Load().Of(way) != wrongWay {
		return err
	}
	m := l.Args[9].Memory // one element of the result
	m.Offset, m.Size = m.Offset+4, 4
	return s.Fill(m, []byte{0, 0, 0x80, 0x45})
}

func plantedConfig() runtime.Config {
	all := driver.Backends()
	cpu := all[slices.IndexFunc(all, func(b driver.Backend) bool { return b.Name() == "cpu" })]
	return runtime.Config{Validate: -1, Backends: []driver.Backend{planted{cpu}}}
}

func session() (*runtime.Session, error) { return runtime.New(plantedConfig()) }

func TestMain(m *testing.M) {
	firstInTests()
	of := os.Getenv("CONCORD_TEST_TUNE_CHILD")
	if of == "" {
		os.Exit(m.Run())
	}
	err := func() error {
		s, err := session()
		if of == "nap:0" {
			s, err = runtime.New(runtime.Config{CacheDir: "off", Tune: "off", Validate: -1})
		}
		if err != nil {
			return err
		}
		defer s.Close()
		d, err := s.Open(context.Background(), of)
		if err != nil {
			return err
		}
		defer d.Close()
		return Serve(context.Background(), s, d, os.Stdin, os.Stdout)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func self() *exec.Cmd { return child("cpu:0") }

// child is a process that measures a device: cpu:0 is planted.
func child(device string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CONCORD_TEST_TUNE_CHILD="+device)
	return cmd
}

func plantedDev(t *testing.T) *runtime.Device {
	t.Helper()
	s, err := session()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// Candidates that compute wrongly, never end, crash or lose the device are named, and the tuner goes on to the good
// one.
func TestPlanted(t *testing.T) {
	dev := plantedDev(t)
	var told []Progress
	table, err := Run(t.Context(), dev, Options{Command: self, Only: []string{"planted"}, Patience: 3 * time.Second,
		Time:     2 * time.Minute,
		Progress: func(p Progress) { told = append(told, p) }})
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"planted.way": fastWay, "planted.pause": 8}, table.Values)
	assert.Equal(t, "planted, 1 thread", table.For)
	require.NoError(t, dev.Choices().Check(table))

	failed, slow := map[int]string{}, false
	for _, trial := range table.Trials {
		slow = slow || trial.Slow && trial.Values["planted.way"] == slowWay
		if trial.Failed != "" {
			failed[trial.Values["planted.way"]] = trial.Failed
		}
	}
	for w, why := range map[int]string{wrongWay: "24: wrong result: gemm on cpu:0",
		endlessWay: "24: it did not end within 3s",
		crashWay:   "24: its process ended: exit status 2: panic: runtime error: invalid memory address",
		lostWay:    "the bus fell off", brokenWay: "the stream is broken"} {
		assert.Contains(t, failed[w], why)
	}
	assert.Len(t, failed, 5)
	assert.True(t, slow, "what takes eight times as long is not measured to the end")
	require.Len(t, told, len(table.Trials))
	assert.Empty(t, told[0].Trial.Values, "the defaults come first")
	assert.Equal(t, len(told), told[len(told)-1].Trials)
}

func TestRunRefuses(t *testing.T) {
	dev := plantedDev(t)
	for why, o := range map[string]Options{
		"Command is nil":                          {},
		"a time of -1ns":                          {Command: self, Time: -1},
		"a patience of -1s":                       {Command: self, Patience: -time.Second},
		`no subject "plante" (planted?)`:          {Command: self, Only: []string{"plante"}},
		`no subject "planted wya" (planted way?)`: {Command: self, Only: []string{"planted wya"}},
		`no subject "xyzzy": invalid argument`:    {Command: self, Only: []string{"xyzzy"}},
		`no size "65" among`:                      {Command: self, Sizes: []string{"24", "65"}},
	} {
		table, err := Run(t.Context(), dev, o)
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		require.ErrorContains(t, err, why)
		assert.Nil(t, table)
	}
}

// A command that starts no child of the tuner costs trials of defaults, not the tuner.
func TestNoChild(t *testing.T) {
	dev := plantedDev(t)
	for _, c := range []struct {
		command []string
		why     string
	}{{[]string{"/no/such/program"}, "start a process"}, {[]string{"sh", "-c", "echo lost >&2; exit 7"},
		"its process ended: exit status 7: lost"}, {[]string{"sleep", "60"}, "it did not end within 500ms"}} {
		table, err := Run(t.Context(), dev, Options{Patience: 500 * time.Millisecond, Sizes: []string{"24"},
			Command: func() *exec.Cmd { return exec.Command(c.command[0], c.command[1:]...) }})
		require.NoError(t, err)
		require.Len(t, table.Trials, 1)
		assert.Contains(t, table.Trials[0].Failed, c.why)
		assert.Empty(t, table.Values)
	}
}

func TestRunEnds(t *testing.T) {
	dev := plantedDev(t)
	ctx, stop := context.WithCancel(t.Context())
	table, err := Run(ctx, dev, Options{Command: self, Sizes: []string{"24"}, Progress: func(Progress) { stop() }})
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, table.Trials, 1)
}

var searchA, searchB = choice.New(choice.Choice{Name: "search.a", Doc: "d", Why: "w", Values: []int{0, 1, 2, 3, 4, 5}}),
	choice.New(choice.Choice{Name: "search.b", Doc: "d", Why: "w", Values: []int{0, 1, 2, 3, 4, 5}})

// The search finds the best values of choices that depend on each other, without trying all of them.
func TestSearch(t *testing.T) {
	trials := 0
	trial := func(values map[string]int, _ bool) choice.Trial {
		trials++
		x, y := float64(values["search.a"]), float64(values["search.b"])
		return choice.Trial{Values: values, Score: 1 + x*y/10 + x/10 - y/20}
	}
	far := time.Now().Add(time.Hour)
	all := []*choice.Choice{searchB, searchA}
	best := search(t.Context(), all, nil, infinite, far, trial)
	assert.Equal(t, map[string]int{"search.a": 5, "search.b": 5}, best)
	assert.Less(t, trials, 36)

	trials = 0
	best = search(t.Context(), []*choice.Choice{searchA, searchB}, nil, 1.1, far, trial)
	assert.Equal(t, map[string]int{"search.a": 1}, best, "the roof ends the search")
	assert.Equal(t, 2, trials)
	assert.Empty(t, search(t.Context(), all, nil, infinite, time.Now(), trial), "no time")

	worse := func(values map[string]int, last bool) choice.Trial {
		if last {
			return choice.Trial{Score: 1.01}
		}
		return choice.Trial{Score: 1.1}
	}
	assert.Nil(t, search(t.Context(), []*choice.Choice{searchA}, nil, infinite, far, worse), "chance")
}

// It begins with what is in use, and leaves out what is no better than the default.
func TestSearchGoesOn(t *testing.T) {
	var tried []map[string]int
	trial := func(values map[string]int, _ bool) choice.Trial {
		tried = append(tried, values)
		return choice.Trial{Values: values, Score: 1 + float64(values["search.a"])/10}
	}
	far := time.Now().Add(time.Hour)
	from := map[string]int{"search.a": 4, "search.b": 3}
	best := search(t.Context(), []*choice.Choice{searchA, searchB}, from, infinite, far, trial)
	assert.Equal(t, map[string]int{"search.a": 5}, best)
	assert.Equal(t, from, tried[0])

	ctx, stop := context.WithCancel(t.Context())
	stop()
	assert.Equal(t, from, search(ctx, []*choice.Choice{searchA, searchB}, from, infinite, far, trial), "interrupted")
	bad := func(values map[string]int, _ bool) choice.Trial { return choice.Trial{Failed: "wrong", Score: 9} }
	assert.Empty(t, search(t.Context(), []*choice.Choice{searchA, searchB}, from, infinite, far, bad))
	slow := func(values map[string]int, _ bool) choice.Trial { return choice.Trial{Slow: true, Score: 9} }
	assert.Empty(t, search(t.Context(), []*choice.Choice{searchA, searchB}, from, infinite, far, slow))
}

// A child whose parent is gone ends, also while a candidate never does.
func TestChildEndsWithItsParent(t *testing.T) {
	cmd := self()
	group.Own(cmd)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, json.NewEncoder(in).Encode(request{Subject: "planted way", For: "planted, 1 thread",
		Points: []string{"24"}, Values: map[string]int{"planted.way": endlessWay}}))
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, `"doing":"24"`)
	require.NoError(t, in.Close())
	assert.Error(t, cmd.Wait())
}

func TestAnswers(t *testing.T) {
	q := request{Points: []string{"24", "40"}}
	for _, good := range [][]choice.Rate{{{Name: "24", Ns: 1, Default: 2}},
		{{Name: "24", Ns: 1, Default: 2}, {Name: "40", Ns: 1, Default: 2}}} {
		assert.True(t, (&answer{Rates: good}).answers(q))
	}
	for _, bad := range [][]choice.Rate{nil, {{Name: "40", Ns: 1, Default: 2}}, {{Name: "24", Default: 2}},
		{{Name: "24", Ns: infinite, Default: 2}}, {{Name: "24", Ns: 1, Default: math.NaN()}}} {
		assert.False(t, (&answer{Rates: bad}).answers(q))
	}
}
