package rates

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/roof"
	"github.com/concord-compute/concord/tests/sim"
)

// open opens a device, or skips the test where it is not there.
func open(t *testing.T, name string) *runtime.Device {
	cfg := runtime.Config{Fallback: runtime.Require}
	backend, _, _ := strings.Cut(name, ":")
	if backend == "sim-cuda" {
		cfg.SimDir = sim.Dir(t, "../../..", backend, "libcuda.so.1")
	}
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	dev, err := s.Open(t.Context(), name)
	if err != nil && backend != "cpu" {
		sim.Absent(t, backend, err.Error())
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return dev
}

// measured measures and returns the rates, of which none may be left out.
func measured(t *testing.T, dev *runtime.Device, opt Options) (list []Rate) {
	t.Helper()
	var doing []string
	opt.Doing = func(name string) { doing = append(doing, name) }
	opt.Each = func(r Rate) { list = append(list, r) }
	require.NoError(t, Measure(t.Context(), dev, opt))
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
	}
	assert.Equal(t, Names(dev, opt), names)
	assert.Equal(t, names, doing)
	stats := dev.Stats()
	assert.Zero(t, stats.Live, "bytes that are left")
	assert.Zero(t, stats.Memory.Cached, "bytes that the pool keeps")
	return list
}

// Every rate is measured, once, on devices of each kind.
func TestQuick(t *testing.T) {
	for _, name := range []string{"cpu:0", "opencl:0", "sim-cuda:0"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "cpu:0" {
				t.Skip("its kernels take long to compile")
			}
			dev := open(t, name)
			seen := map[string]bool{}
			for _, r := range measured(t, dev, Options{Quick: true, Peer: "none"}) {
				assert.False(t, seen[r.Name], "%s twice", r.Name)
				seen[r.Name] = true
				assert.False(t, r.Failed, "%+v", r)
				if r.Reason != "" && name == "cpu:0" && noCompiler(t, dev) { // of the kernels that have to be compiled
					assert.Zero(t, r.Median, r.Name)
					continue
				}
				assert.Empty(t, r.Reason, r.Name)
				for _, x := range []float64{r.Median, r.Spread, r.Roof} {
					assert.False(t, math.IsInf(x, 0) || math.IsNaN(x) || x < 0, "%+v", r)
				}
				assert.Positive(t, r.Median, r.Name)
				assert.True(t, r.Samples >= 3 || r.Area == roofArea, r.Name)
				if r.Area == "products" {
					assert.Contains(t, r.Implementation, "gemm ", r.Name)
				}
				if strings.HasSuffix(r.Name, " portable") {
					assert.Contains(t, []string{"gemm c++", "gemm opencl", "gemm cuda"}, r.Implementation)
				}
			}
		})
	}
}

// noCompiler reports whether a device compiles no programs here: the build is without cgo, or there is no C++ compiler.
func noCompiler(t *testing.T, dev *runtime.Device) bool {
	_, err := dev.Driver().(driver.Compiler).Identity(t.Context())
	return errors.Is(err, runtime.ErrUnsupported)
}

// The sizes of a GPU have names of their own, and a name does its work without a clock.
func TestNames(t *testing.T) {
	dev := open(t, "cpu:0")
	quick, full := Names(dev, Options{Quick: true}), Names(dev, Options{})
	assert.NotContains(t, quick, "gemm f32 4096")
	assert.Contains(t, full, "gemm f32 4096")
	assert.Equal(t, []string{"softmax 32768x4096", "layer norm 32768x4096"}, Names(dev, Options{Only: []string{"rows"}}))
	for _, j := range jobs(sizesOf(dev, false)) {
		if j.area != "launches" {
			assert.NotContains(t, quick, j.name, "it is both large and quick")
		}
	}
	before := dev.Stats().Launches
	require.NoError(t, Once(t.Context(), dev, "gemm f32 256", 3))
	assert.EqualValues(t, 3, dev.Stats().Launches-before)
	assert.Zero(t, dev.Stats().Live)
	assert.ErrorIs(t, Once(t.Context(), dev, "gemm f33 256", 3), runtime.ErrInvalidArgument)
	assert.ErrorIs(t, Measure(t.Context(), dev, Options{Only: []string{"gemm f33 256"}}), runtime.ErrInvalidArgument)
}

// A rate that the device has no memory for says so, and the next one is measured.
func TestNoMemory(t *testing.T) {
	dev := open(t, "cpu:0")
	require.NoError(t, dev.Memory().SetLimits(0, 60<<20))
	list := measured(t, dev, Options{Quick: true, Peer: "none", Only: []string{"memory", "gemm f32 256"}})
	require.Len(t, list, 2)
	assert.Zero(t, list[0].Median)
	assert.Contains(t, list[0].Reason, "limit")
	assert.False(t, list[0].Failed, "the device lacks something, nothing is wrong")
	assert.Positive(t, list[1].Median)
}

// A context that ends stops the measurement soon, and leaves nothing behind.
func TestCancelled(t *testing.T) {
	dev := open(t, "cpu:0")
	_, err := roof.Of(t.Context(), dev)
	require.NoError(t, err)
	for _, name := range []string{"copy 64 MiB", "nearest fp32 20000x64 by 16", "MLP 784-512-256-10 batch 64"} {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		err := Measure(ctx, dev, Options{Quick: true, Peer: "none", Doing: func(doing string) {
			if doing == name {
				began = time.Now()
				time.AfterFunc(5*time.Millisecond, cancel)
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, name)
		assert.Less(t, time.Since(began), 5*time.Second)
		assert.Zero(t, dev.Stats().Live)
	}
}

// interpreter writes a script that stands for Python.
func interpreter(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
	return path
}

const hello = `echo '{"peer": "Fake 1"}'
`

// A peer that dies, hangs or answers nonsense is left out, which one rate says; one that refuses a call goes on.
func TestPeer(t *testing.T) {
	dev := open(t, "cpu:0")
	only := []string{"rows", "sum of all 2048x1024"}
	rates := func(interpreter string) []Rate {
		list := measured(t, dev, Options{Quick: true, Peer: interpreter, Only: only})
		require.Len(t, list, 3)
		for _, r := range list {
			assert.Empty(t, r.Reason)
			assert.Positive(t, r.Median)
		}
		return list
	}
	for name, c := range map[string]struct{ text, note string }{
		"missing":      {"exit 127", "no PyTorch"},
		"no module":    {`echo '{"error": "ModuleNotFoundError: No module named torch"}'`, "No module named torch"},
		"silent":       {hello + "read line; echo went wrong >&2; exit 3", "exit status 3 went wrong"},
		"at once":      {hello, "PyTorch is left out"},
		"rubbish":      {hello + "while read line; do echo hello; done", `no answer but "hello"`},
		"endless line": {hello + "read line; tr '\\0' x </dev/zero", "PyTorch is left out"},
		"no time":      {hello + "while read line; do echo '{}'; done", "0 nanoseconds"},
		"died later": {hello + `read line; echo '{"note": "a"}'; read line; echo '{"ns": 5}'; read line; kill -9 $$`,
			"PyTorch is left out"},
	} {
		t.Run(name, func(t *testing.T) {
			list := rates(interpreter(t, c.text))
			assert.Contains(t, list[0].PeerNote, c.note)
			for _, r := range list {
				assert.Zero(t, r.PeerMedian)
				assert.Empty(t, r.Peer)
			}
			assert.Empty(t, list[1].PeerNote+list[2].PeerNote, "it is said once")
		})
	}
	t.Run("no such file", func(t *testing.T) {
		assert.Contains(t, rates(filepath.Join(t.TempDir(), "none"))[0].PeerNote, "no such file")
	})
	t.Run("refuses one", func(t *testing.T) {
		list := rates(interpreter(t, hello+`while read line; do case $line in
*layer_norm*) echo '{"error": "out of memory"}';; *call*) echo '{"note": "eager"}';; *run*) echo '{"ns": 1000}';;
*) echo '{}';; esac; done`))
		for i, want := range []string{"Fake 1 eager", " out of memory", "Fake 1 eager"} {
			assert.Equal(t, want, list[i].Peer+" "+list[i].PeerNote)
		}
		assert.InDelta(t, 8*float64(1<<21)/1000, list[0].PeerMedian, 1)
	})
}

// A peer that does not answer ends with the context.
func TestPeerHangs(t *testing.T) {
	dev := open(t, "cpu:0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	err := Measure(ctx, dev, Options{Quick: true, Peer: interpreter(t, hello+"exec sleep 100"), Only: []string{"rows"}})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(start), 10*time.Second)
	assert.Zero(t, dev.Stats().Live)
}

// PyTorch makes every call of the script, where there is one, but for what it cannot do on a processor.
func TestPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("PyTorch takes long where it is slow")
	}
	dev := open(t, "cpu:0")
	for i, r := range measured(t, dev, Options{Quick: true}) {
		switch {
		case i == len(roofs) && r.Peer == "":
			t.Skip(r.PeerNote)
		case r.Area == roofArea, strings.Contains(r.Name, "int8"), strings.Contains(r.PeerNote, "PyTorch has no "),
			strings.Contains(r.PeerNote, "not implemented for 'Half'"):
			assert.Empty(t, r.Peer, "%+v", r)
		default:
			assert.NotEmpty(t, r.Peer, "%+v", r)
			assert.Positive(t, r.PeerMedian, "%+v", r)
		}
	}
}
