package runtime

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// The choices of a device in these tests: one that keeps every bit, and one that does not. The third is of a package
// that is no backend.
var (
	exactChoice = choice.New(choice.Choice{Name: "cuda.exact", Doc: "d", Why: "w", Values: []int{0, 1}})
	roundChoice = choice.New(choice.Choice{Name: "cuda.round", Doc: "d", Why: "w", Values: []int{0, 1}, Rounds: true})
	otherChoice = choice.New(choice.Choice{Name: "package.exact", Doc: "d", Why: "w", Values: []int{0, 1}})
)

// tunableBackend is a nullBackend whose devices have choices.
type tunableBackend struct{ *nullBackend }

func (b tunableBackend) Open(ctx context.Context, i int, cfg *Config) (driver.Device, error) {
	d, err := b.nullBackend.Open(ctx, i, cfg)
	if err != nil {
		return nil, err
	}
	return &tunableDevice{nullDevice: d.(*nullDevice)}, nil
}

type tunableDevice struct {
	*nullDevice
	set atomic.Pointer[choice.Set]
}

func (d *tunableDevice) Choices() []*choice.Choice { return []*choice.Choice{exactChoice, roundChoice} }
func (d *tunableDevice) Choose(s *choice.Set)      { d.set.Store(s) }
func (d *tunableDevice) TunedFor() string          { return "null" }

// told is a tuner that wants so many launches.
type told struct {
	wants, launches, closed int
	on                      driver.TuneTarget
}

func (t *told) Launched(on driver.TuneTarget, _ *source.Unit, kernel string, l *driver.Launch) bool {
	if kernel == "axpy" && len(l.Args) == 4 {
		t.launches++
		t.on = on
	}
	return t.launches < t.wants
}

func (t *told) Close() error { t.closed++; return nil }

// openTold opens a device in a session with a tuner.
func openTold(t *testing.T, dir string, tuner *told) (*Session, *Device) {
	t.Helper()
	driver.RegisterTuner(func(*driver.Config) (driver.Tuner, error) { return tuner, nil })
	t.Cleanup(func() { driver.RegisterTuner(nil) })
	b := &nullBackend{name: "cuda", devices: 1}
	return open(t, b, Config{CacheDir: dir, Tune: driver.TuneFirst, Backends: []driver.Backend{tunableBackend{b}}})
}

// A tuner is told of the first launches, also of those that are recorded, until it knows enough or they are many, and
// is closed with the session.
func TestTunerIsTold(t *testing.T) {
	tuner := &told{wants: 3}
	s, d := openTold(t, "off", tuner)
	k := kernel(t, d, "axpy")
	x := buffer(t, d, F32, 64)
	launch := func(k *Kernel) error { return d.Stream().Launch(k, Items(64), float32(1), x, x, 64) }
	require.NoError(t, launch(k))
	require.ErrorIs(t, d.Stream().Launch(k, Items(64)), ErrInvalidArgument)
	assert.Equal(t, 1, tuner.launches)
	assert.Equal(t, "cuda:0", tuner.on.ID())
	g, err := d.Stream().Capture(func(s *Stream) error { return s.Launch(k, Items(64), float32(1), x, x, 64) })
	require.NoError(t, err)
	assert.Equal(t, 2, tuner.launches)
	require.NoError(t, g.Close())
	for range 3 {
		require.NoError(t, launch(k))
	}
	assert.Equal(t, 3, tuner.launches)

	tuner.launches, tuner.wants = 0, 2*mostOffers
	k = kernel(t, d, "axpy")
	k.offered.Store(0)
	for range mostOffers + 10 {
		require.NoError(t, launch(k))
	}
	assert.Equal(t, mostOffers, tuner.launches)
	require.NoError(t, s.Close())
	assert.Equal(t, 1, tuner.closed)
}

// What a tuner keeps is used at once only if it changes no bit and no program, and in any case by the next session.
func TestTunerKeeps(t *testing.T) {
	for name, c := range map[string]struct {
		of   *choice.Choice
		used bool
	}{"exact": {exactChoice, true}, "rounds": {roundChoice, false}, "of a package": {otherChoice, false}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			_, d := openTold(t, dir, &told{})
			target := driver.TuneTarget(tuneTarget{d.core})
			assert.Nil(t, target.Tuned())
			table := d.Choices().New(map[string]int{c.of.Name: 1})
			used, err := target.Keep(table)
			require.NoError(t, err)
			assert.Equal(t, c.used, used)
			assert.Equal(t, c.used, d.Choices().Of(c.of) == 1)
			assert.Equal(t, table, target.Tuned())
			_, next := openTold(t, dir, &told{})
			assert.Equal(t, table, next.Choices().Table())

			require.NoError(t, d.Close())
			other := d.Choices().New(map[string]int{})
			used, err = target.Keep(other)
			require.NoError(t, err, "the device is closed, and the file is kept")
			assert.False(t, used)
			assert.Equal(t, other, target.Tuned())
			other.For = "another"
			_, err = target.Keep(other)
			assert.ErrorIs(t, err, ErrInvalidArgument)
		})
	}
	_, d := openTold(t, "off", &told{})
	dir, table, notes := tuneTarget{d.core}.TunedFiles()
	assert.Empty(t, dir+table+notes)
}

// Config.Tune "first" needs a call that this program does not make.
func TestTuneFirstWithoutItsPackage(t *testing.T) {
	s, err := New(Config{Tune: driver.TuneFirst})
	require.NoError(t, err)
	assert.Nil(t, s.tuner)
	require.NoError(t, s.Close())
	_, err = New(Config{Tune: driver.TuneFirst, Strict: true})
	assert.ErrorIs(t, err, ErrUnsupported)
	assert.ErrorContains(t, err, "FirstUse of package runtime/tune")
}
