// Package first tests the first calls of a process into its drivers, from many goroutines at once.
// A driver whose initialization is not thread-safe ends the process, so each trial is a separate
// process.
package first

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trialVariable makes a process of this test a child that carries out the trial that its value
// describes. runsVariable is the number of processes for each trial.
const (
	trialVariable = "FIRST_TEST_TRIAL"
	runsVariable  = "FIRST_TEST_RUNS"
)

// trial describes the work of the goroutines of one process, which all start at the same moment.
type trial struct {
	goroutines int
	own        bool     // one session per goroutine, not one for all
	build      bool     // they also build a program and run it
	probe      bool     // every second one looks for all devices instead
	hang       bool     // the drivers of all backends but cpu never return
	devices    []string // opened in turn
}

// String returns the trial's name, which parseTrial parses.
func (t trial) String() string {
	words := []string{strconv.Itoa(t.goroutines)}
	for word, is := range t.flags() {
		if *is {
			words = append(words, word)
		}
	}
	slices.Sort(words[1:])
	return strings.Join(append(words, t.devices...), " ")
}

// flags are the fields of a trial that are one word of its name.
func (t *trial) flags() map[string]*bool {
	return map[string]*bool{"own": &t.own, "build": &t.build, "probe": &t.probe, "hang": &t.hang}
}

func parseTrial(text string) (t trial, err error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return t, fmt.Errorf("%q is no trial", text)
	}
	t.goroutines, err = strconv.Atoi(words[0])
	flags := t.flags()
	for _, word := range words[1:] {
		if is := flags[word]; is != nil {
			*is = true
		} else {
			t.devices = append(t.devices, word)
		}
	}
	return t, err
}

func TestMain(m *testing.M) {
	text := os.Getenv(trialVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	t, err := parseTrial(text)
	if err == nil {
		err = t.carryOut(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// carryOut lets all goroutines begin at once and returns their errors.
func (t trial) carryOut(ctx context.Context) error {
	shared, err := t.session()
	if err != nil {
		return err
	}
	errs := make([]error, t.goroutines)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			<-begin
			errs[i] = t.one(ctx, shared, i)
		})
	}
	close(begin)
	wg.Wait()
	return errors.Join(append(errs, shared.Close())...)
}

func (t trial) session() (*runtime.Session, error) {
	// long enough for a busy machine
	cfg := runtime.Config{Fallback: runtime.Require, CacheDir: "off", ProbeTimeout: time.Minute}
	if t.hang {
		cfg.ProbeTimeout = time.Second
	}
	return runtime.New(cfg)
}

// one is the work of goroutine i.
func (t trial) one(ctx context.Context, s *runtime.Session, i int) (err error) {
	if t.own {
		if s, err = t.session(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	if t.probe && i%2 == 1 {
		_, err = s.Discover(ctx)
		return err
	}
	name := t.devices[i%len(t.devices)]
	d, err := s.Open(ctx, name)
	if t.hang && name != "cpu:0" {
		if !errors.Is(err, runtime.ErrNoDevice) {
			return fmt.Errorf("%s of a driver that hangs: %w", name, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if !t.build {
		return nil
	}
	return run(ctx, d, i)
}

// run builds a program of the goroutine's own and launches it.
func run(ctx context.Context, d *runtime.Device, i int) error {
	text := fmt.Sprintf("kernel void put(global int *out) { out[get_global_id(0)] = %d; }", i)
	unit, err := source.Parse(text, source.Options{Name: "put.cl", Features: d.Features()})
	if err != nil {
		return err
	}
	p, err := d.Program(ctx, unit)
	if err != nil {
		return err
	}
	defer p.Close()
	k, err := p.Kernel("put")
	if err != nil {
		return err
	}
	b, err := d.Alloc(runtime.I32, 8)
	if err != nil {
		return err
	}
	defer b.Close()
	if _, err = d.Run(ctx, k, runtime.Items(8), b); err != nil {
		return err
	}
	got := make([]int32, 8)
	if err = runtime.Read(ctx, b, got); err != nil {
		return err
	}
	if slices.ContainsFunc(got, func(v int32) bool { return v != int32(i) }) {
		return fmt.Errorf("goroutine %d read %v", i, got)
	}
	return nil
}

// icds are the OpenCL implementations. In a trial only one of them is visible; each has the setting
// for the loader and its other requirements.
var icds = []struct {
	name, vendors string
	env           []string
}{
	{name: "pocl", vendors: "/etc/OpenCL/vendors/pocl.icd"},
	{name: "rusticl", vendors: "/etc/OpenCL/vendors/rusticl.icd", env: []string{"RUSTICL_ENABLE=llvmpipe"}},
	{name: "all", vendors: "/etc/OpenCL/vendors", env: []string{"RUSTICL_ENABLE=llvmpipe"}},
}

// trials are tried with each of them.
var trials = []trial{
	{goroutines: 2, devices: []string{"cpu:0", "opencl:0"}},
	{goroutines: 4, devices: []string{"opencl:0"}},
	{goroutines: 64, devices: []string{"cpu:0", "opencl:0"}},
	{goroutines: 64, own: true, devices: []string{"opencl:0"}},
	{goroutines: 16, own: true, probe: true, devices: []string{"opencl:0", "cpu:0"}},
	{goroutines: 4, build: true, devices: []string{"opencl:0"}},
	{goroutines: 8, own: true, build: true, devices: []string{"opencl:0"}},
}

// runs returns the number of processes that carry out a trial. It is lower for builds, which take
// long.
func (tr trial) runs(t *testing.T) int {
	text := os.Getenv(runsVariable)
	switch {
	case text == "" && tr.build:
		return 1
	case text == "":
		return 4
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, runsVariable)
	return n
}

// TestFirstOpens: the first calls of a process may come from any number of goroutines. If they were
// not made one at a time, some drivers would end the process; PoCL 3.1 does in most runs with two
// goroutines.
func TestFirstOpens(t *testing.T) {
	for _, icd := range icds {
		t.Run(icd.name, func(t *testing.T) {
			if _, err := os.Stat(icd.vendors); err != nil {
				absent(t, "opencl", err.Error())
			}
			env := append([]string{"OCL_ICD_VENDORS=" + icd.vendors}, icd.env...)
			if out, err := start(t, trial{goroutines: 1, devices: []string{"opencl:0"}}, env); err != nil {
				absent(t, "opencl", fmt.Sprintf("%s has no device: %v: %s", icd.name, err, brief(out)))
			}
			for _, tr := range trials {
				t.Run(tr.String(), func(t *testing.T) { repeat(t, tr, env) })
			}
		})
	}
}

const hangingDriver = `#include <unistd.h>
int clGetPlatformIDs(unsigned n, void *list, unsigned *count) { (void)n, (void)list, (void)count; for (;;) pause(); }
`

// TestFirstCallHangs: with a driver that never returns, calls for its devices return an error that
// says so within the time limit of a probe, and other backends are not delayed.
func TestFirstCallHangs(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	text, library := filepath.Join(dir, "hang.c"), filepath.Join(dir, "libhang.so")
	require.NoError(t, os.WriteFile(text, []byte(hangingDriver), 0o600))
	out, err := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-o", library, text).CombinedOutput()
	require.NoError(t, err, "%s", out)
	env := []string{"CONCORD_OPENCL_LIBRARY=" + library}
	for _, tr := range []trial{
		{goroutines: 16, hang: true, devices: []string{"opencl:0", "cpu:0"}},
		{goroutines: 16, hang: true, own: true, devices: []string{"opencl:0", "cpu:0"}},
		{goroutines: 16, hang: true, own: true, probe: true, devices: []string{"opencl:0"}},
	} {
		t.Run(tr.String(), func(t *testing.T) { repeat(t, tr, env) })
	}
}

// TestFirstSim is the same for the vendors' shims, on their simulated libraries.
func TestFirstSim(t *testing.T) {
	for _, name := range driver.SimulatedNames() {
		t.Run(name, func(t *testing.T) {
			device := name + ":0"
			if out, err := start(t, trial{goroutines: 1, devices: []string{device}}, nil); err != nil {
				absent(t, name, fmt.Sprintf("this machine has no %s: %v: %s", device, err, brief(out)))
			}
			for _, tr := range trials {
				tr.devices = slices.Clone(tr.devices)
				for i := range tr.devices {
					tr.devices[i] = strings.Replace(tr.devices[i], "opencl:0", device, 1)
				}
				t.Run(tr.String(), func(t *testing.T) { repeat(t, tr, nil) })
			}
		})
	}
}

// absent skips a test, or fails it if CONCORD_REQUIRE names the backend and this is the driver that
// is required.
func absent(t *testing.T, backend, why string) {
	t.Helper()
	if strings.HasSuffix(t.Name(), "/rusticl") {
		t.Skip(why)
	}
	sim.Absent(t, backend, why)
}

// repeat carries out a trial in one process after the other and counts the processes that failed.
func repeat(t *testing.T, tr trial, env []string) {
	n, bad := tr.runs(t), 0
	for range n {
		out, err := start(t, tr, env)
		if err != nil {
			if bad++; bad == 1 {
				t.Logf("the first that failed: %v\n%s", err, brief(out))
			}
		}
	}
	assert.Zero(t, bad, "of %d processes", n)
}

// start carries out a trial in a new process.
func start(t *testing.T, tr trial, env []string) (output []byte, err error) {
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), trialVariable+"="+tr.String(), "POCL_CACHE_DIR="+filepath.Join(t.TempDir(), "pocl"))
	cmd.Env = append(cmd.Env, env...)
	return cmd.CombinedOutput()
}

// brief returns the beginning of the output of a process that died.
func brief(out []byte) []byte {
	const most = 3000
	return bytes.TrimSpace(out[:min(len(out), most)])
}
