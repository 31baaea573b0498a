//go:build cgo && linux

// Package failover has simulated devices that are lost, have no memory left or hang at random points of searches,
// computations of tensors and trainings on a Runner. Results are right or a typed error says why there is none, in
// time. Nothing is done twice, and nothing is left.
package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tests/sim"
	"github.com/concord-compute/concord/tests/sim/control"
)

// Without allVariable each kind of work has few seeds.
const (
	allVariable = "FAILOVER_ALL"
	few, all    = 3, 200
)

// The limits of an attempt on one device, and of a run. A kernel that hangs takes longer than an attempt may. After
// that others no longer hang.
const (
	attempt = 3 * time.Second
	hang    = "slow-kernel:5000"
	runTime = 90 * time.Second
)

// room is what is tested: its work, which calls step before each part of it, and at whose end, without an error, its
// results are right. A failure that the policy lets through is one of typed.
type room struct {
	name  string
	parts int // steps in which a device may hang, all or the first ones
	work  func(ctx context.Context, t *testing.T, w *world) error
}

// world is what a run has.
type world struct {
	rnd    *rand.Rand
	r      *cluster.Runner
	device string // the first one
	strict bool   // the policy is "require"
	mends  func() // ends the faults, and has the device tried again
	step   func() // says that a part begins
	dir    string
}

// typed are the errors of a device that is lost, has no memory left or hangs, as the policy "require" returns them.
var typed = []error{runtime.ErrDeviceLost, runtime.ErrOutOfMemory, driver.ErrTimeout, runtime.ErrLaunch,
	runtime.ErrNoDevice}

func allowed(err error) bool {
	return slices.ContainsFunc(typed, func(is error) bool { return errors.Is(err, is) })
}

// machine is a simulated library.
type machine struct {
	device, library string
	counts          []string
}

var machines = []machine{
	{"sim-cuda:0", "libcuda.so.1", []string{"allocations", "bytes", "pinned", "streams", "events", "modules", "graphs",
		"contexts"}},
	{"sim-rocm:0", "libamdhip64.so.5", []string{"allocations", "bytes", "pinned", "streams", "events", "modules",
		"graphs"}},
}

// tally counts the outcomes of the runs of a room.
type tally struct{ runs, moved, retried, errors, untouched int }

func TestSimFailover(t *testing.T) {
	seeds := few
	if os.Getenv(allVariable) != "" {
		seeds = all
	}
	var dirs []string
	var libs []*control.Library
	for _, m := range machines {
		dir := sim.Dir(t, filepath.Join("..", ".."), m.device[:len(m.device)-2], m.library)
		lib, err := control.Open(filepath.Join(dir, m.library))
		require.NoError(t, err)
		dirs, libs = append(dirs, dir), append(libs, lib)
	}
	for _, r := range []room{{"search", 16, search}, {"eval", 16, eval}, {"train", 5, train},
		{"train on two", 5, train}} {
		t.Run(r.name, func(t *testing.T) {
			seeds := seeds
			if r.name == "train on two" { // beside those on one device
				seeds = max(seeds/4, 2)
			}
			var sum [3]tally
			calls := make([][2]int64, len(machines)) // of an undisturbed run, of which the first also compiles
			for i, m := range machines {
				for range 2 {
					n := &runOf{machine: m, lib: libs[i], dir: dirs[i], room: r, fault: "none"}
					n.run(t)
					calls[i] = n.calls
				}
			}
			for seed := range seeds {
				i, kind := (seed/3)%len(machines), seed%3
				n := &runOf{machine: machines[i], lib: libs[i], dir: dirs[i], room: r, seed: uint64(seed),
					fault: []string{"lost", "memory", "hang"}[kind], before: calls[i]}
				n.run(t)
				s := &sum[kind]
				s.runs++
				switch {
				case n.failed:
					s.errors++
				case n.stats.Fallbacks > 0:
					s.moved++
				case n.stats.Retries > 0:
					s.retried++
				default:
					s.untouched++
				}
				t.Logf("seed %d, %s, %s: %+v", seed, n.device, n.what, n.stats)
				if t.Failed() {
					t.Fatalf("seed %d, %s: %s", seed, n.device, n.what)
				}
			}
			for kind, name := range []string{"lost", "out of memory", "hangs"} {
				t.Logf("%s: %s: %+v", r.name, name, sum[kind])
			}
		})
	}
}

// runOf is one run.
type runOf struct {
	machine
	lib    *control.Library
	dir    string
	room   room
	seed   uint64
	fault  string
	before [2]int64 // calls, and calls that allocate, of a run that is not disturbed

	what   string // that failed
	calls  [2]int64
	failed bool // with a typed error
	given  bool // a device was given up, also since a busy machine took longer than an attempt may
	stats  cluster.RunnerStats
}

func (n *runOf) run(t *testing.T) {
	rnd := rand.New(rand.NewPCG(n.seed, 7))
	goroutines, before := goruntime.NumGoroutine(), make([]int64, len(n.counts))
	for i, what := range n.counts {
		before[i] = n.lib.Count(what)
	}
	config := runtime.Config{SimDir: n.dir, NoProbeCache: true}
	if n.fault != "none" && rnd.IntN(3) == 0 {
		config.Fallback = runtime.Require
	}
	session, err := runtime.New(config)
	require.NoError(t, err)
	o := cluster.Failover{Session: session, CoolDown: time.Millisecond << rnd.IntN(17)}
	if n.fault != "none" { // else it compiles
		o.Timeout = attempt
	}
	names := []string{n.device}
	if n.room.name == "train on two" {
		names = append(names, n.device[:len(n.device)-1]+"1")
	}
	r, err := o.NewRunner(t.Context(), names...)
	require.NoError(t, err)
	steps, at := 0, 1+rnd.IntN(n.room.parts)
	// A call that waits in the driver returns when the kernels have ended that are queued, which are many.
	ends := time.AfterFunc(runTime, func() { assert.NoError(t, n.lib.Control("")) })
	defer ends.Stop()
	command := ""
	switch n.fault {
	case "lost":
		command = fmt.Sprintf("lost:%d", 1+rnd.Int64N(n.before[0]))
	case "memory":
		command = fmt.Sprintf("alloc:%d%s", 1+rnd.Int64N(max(n.before[1], 1)), []string{"", "+", "+", "+"}[rnd.IntN(4)])
	case "hang":
		n.what = fmt.Sprintf("hang at step %d", at)
	}
	if command != "" {
		n.what = command
	}
	require.NoError(t, n.lib.Control(command))
	defer func() { assert.NoError(t, n.lib.Control("")) }()
	w := &world{rnd: rnd, r: r, device: n.device, strict: config.Fallback == runtime.Require, dir: t.TempDir(),
		mends: func() {
			assert.NoError(t, n.lib.Control(""))
			for _, name := range names {
				assert.NoError(t, r.Resume(name))
			}
		},
		step: func() {
			if steps++; steps == at && n.fault == "hang" {
				assert.NoError(t, n.lib.Control(hang))
				ends.Reset(attempt + time.Second)
			}
		}}
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	start := time.Now()
	err = n.room.work(ctx, t, w)
	n.calls = [2]int64{n.lib.Count("calls"), n.lib.Count("calls:alloc")}
	assert.Less(t, time.Since(start), runTime, "seed %d", n.seed)
	n.stats, n.failed, n.given = r.Stats(), err != nil, gaveUp(r, err)
	if err != nil {
		assert.True(t, w.strict && allowed(err), "seed %d, %s: %v", n.seed, n.what, err)
	}
	if w.strict {
		assert.Zero(t, n.stats.Fallbacks, "the policy does not allow it")
	}
	assert.NoError(t, n.lib.Control(""))
	assert.NoError(t, r.Close())
	if dev, err := session.Open(t.Context(), "cpu:0"); assert.NoError(t, err) {
		assert.Zero(t, dev.Stats().LiveBuffers, "seed %d, %s", n.seed, n.what)
		assert.NoError(t, dev.Close())
	}
	assert.NoError(t, session.Close())
	if n.fault != "none" { // in which all starts that stays
		n.left(t, goroutines, before)
	}
}

// gaveUp reports whether an attempt has taken too long.
func gaveUp(r *cluster.Runner, err error) bool {
	late := errors.Is(err, driver.ErrTimeout)
	for _, d := range r.Devices() {
		late = late || errors.Is(d.LastError, driver.ErrTimeout)
	}
	for _, e := range r.Events() {
		late = late || errors.Is(e.Err, driver.ErrTimeout)
	}
	return late
}

// left compares what there is with what there was. A device that was given up keeps all that it has.
func (n *runOf) left(t *testing.T, goroutines int, before []int64) {
	for end := time.Now().Add(15 * time.Second); goruntime.NumGoroutine() > goroutines && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if now := goruntime.NumGoroutine(); now > goroutines {
		stacks := make([]byte, 1<<20)
		t.Errorf("seed %d, %s: %d goroutines, and not %d: %s", n.seed, n.what, now, goroutines,
			stacks[:goruntime.Stack(stacks, true)])
	}
	if n.given || n.fault == "hang" { // which may have come when all was done
		return
	}
	for i, what := range n.counts {
		for end := time.Now().Add(5 * time.Second); n.lib.Count(what) > before[i] && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		assert.LessOrEqual(t, n.lib.Count(what), before[i], "seed %d, %s left %s", n.seed, n.what, what)
	}
}
