package devices

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

// fakeSensors is a reader that answers what a test says.
type fakeSensors struct {
	name  string
	calls int
	read  func(ctx context.Context) ([]telemetry.Sample, error)
}

func (f *fakeSensors) Name() string { return f.name }

func (f *fakeSensors) Sample(ctx context.Context, _ *driver.Config) ([]telemetry.Sample, error) {
	f.calls++
	return f.read(ctx)
}

// answers returns a reader that always says the same.
func answers(name string, err error, samples ...telemetry.Sample) *fakeSensors {
	return &fakeSensors{name: name, read: func(context.Context) ([]telemetry.Sample, error) { return samples, err }}
}

// twoGPUs are devices whose order differs from that of their samples.
var twoGPUs = []runtime.Probe{{Backend: "cuda", State: driver.Available, Devices: []runtime.Info{
	{ID: "cuda:0", Backend: "cuda", UUID: "bbbbbbbb-0000-0000-0000-000000000000", Kind: driver.Discrete},
	{ID: "cuda:1", Backend: "cuda", PCI: "0000:0a:00.0", Kind: driver.Discrete},
}}}

func twoSamples() []telemetry.Sample {
	return []telemetry.Sample{
		{Backend: "cuda", Index: 0, PCI: "0000:0a:00.0", Name: "First", Busy: new(12.0), Throttle: []string{}},
		{Backend: "cuda", Index: 1, UUID: "GPU-bbbbbbbb-0000-0000-0000-000000000000", PCI: "0000:0b:00.0", Name: "Second",
			Busy: new(97.0), MemoryBusy: new(40.4), MemoryUsed: new(int64(1) << 30), MemoryFree: new(int64(39) << 30),
			MemoryTotal: new(int64(40) << 30),
			Temperature: new(61.0), Power: new(251.4), PowerLimit: new(400.0), Clock: new(1410.0), MaxClock: new(1980.0),
			MemoryClock: new(1215.0),
			Fan:         new(30.0), ECC: new(true), ECCCorrected: new(int64(0)), ECCUncorrected: new(int64(2)),
			Throttle:  []string{"power cap", "temperature (driver)"},
			Processes: []telemetry.Process{{PID: 42, Name: "train", MemoryUsed: new(int64(2) << 20)}, {PID: 43}}},
		{Backend: "cuda", Index: 2, PCI: "0000:0c:00.0"},
	}
}

func TestTopTable(t *testing.T) {
	var out bytes.Buffer
	a := app.New(&out, &out)
	lost := &driver.OpError{Backend: "cuda", Op: "telemetry", Detail: "the GPU has\nfallen off the bus",
		Err: driver.ErrDeviceLost}
	m := newMeter(driver.Config{}, twoGPUs, []telemetry.Reader{
		answers("cuda", lost, twoSamples()...),
		telemetry.Missing("rocm", "not in this build: rebuild with -tags rocm"),
	})
	require.NoError(t, top(t.Context(), a, m, topOptions{interval: time.Millisecond, count: 2}))
	block := strings.Join([]string{
		"DEVICE             BUSY  MEM BUSY  MEMORY               TEMP   POWER         CLOCK             MEM CLOCK  FAN   " +
			"ECC                HELD BACK BY                     NAME",
		"cuda:1             12 %  -         -                    -      -             -                 -          -     - " +
			"                 nothing                          First",
		"cuda:0             97 %  40 %      1.0 GiB of 40.0 GiB  61 °C  251 of 400 W  1410 of 1980 MHz  1215 MHz   30 %  " +
			"on, 2 uncorrected  power cap, temperature (driver)  Second",
		"cuda 0000:0c:00.0  -     -         -                    -      -             -                 -          -     - " +
			"                 -",
		"",
		"PROCESS  DEVICE  MEMORY   NAME",
		"42       cuda:0  2.0 MiB  train",
		"43       cuda:0  -",
		"",
	}, "\n")
	why := "\ncuda: telemetry: the GPU has fallen off the bus: device lost\nrocm: telemetry: not in this build: rebuild " +
		"with -tags rocm: no such device\n"
	assert.Equal(t, block+why+"\n"+block, out.String(), "why is said once")
}

func TestTopDevice(t *testing.T) {
	show := func(device string, readers ...telemetry.Reader) (string, error) {
		var out bytes.Buffer
		err := top(t.Context(), app.New(&out, &out), newMeter(driver.Config{}, twoGPUs, readers),
			topOptions{interval: time.Millisecond, count: 1, device: device})
		return out.String(), err
	}
	text, err := show("cuda:0", answers("cuda", nil, twoSamples()...))
	require.NoError(t, err)
	assert.Contains(t, text, "Second")
	assert.NotContains(t, text, "First")
	text, err = show("cuda", answers("cuda", nil, twoSamples()...))
	require.NoError(t, err)
	assert.Contains(t, text, "First")
	_, err = show("cuda:7", answers("cuda", nil, twoSamples()...))
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.EqualError(t, err, "--device cuda:7: no sensors of such a device: no such device")
	_, err = show("rocm", telemetry.Missing("rocm", "the driver is not loaded"))
	assert.EqualError(t, err, "--device rocm: rocm: telemetry: the driver is not loaded: no such device")
	_, err = show("", telemetry.Missing("cuda", "A"), telemetry.Missing("rocm", "B"))
	assert.EqualError(t, err, "nothing to show: cuda: telemetry: A; rocm: telemetry: B: no such device")
}

func TestTopJSON(t *testing.T) {
	var out bytes.Buffer
	a := app.New(&out, &out)
	a.JSON = true
	m := newMeter(driver.Config{}, twoGPUs, []telemetry.Reader{answers("cuda", nil, twoSamples()...),
		telemetry.Missing("rocm", "not here")})
	require.NoError(t, top(t.Context(), a, m, topOptions{interval: time.Millisecond, count: 2}))
	doc := apptest.Document(t, out.String())
	samples := doc["samples"].([]any)
	require.Len(t, samples, 6)
	assert.Equal(t, "cuda:0", samples[1].(map[string]any)["device"])
	assert.Equal(t, 251.4, samples[1].(map[string]any)["power_watts"])
	assert.NotContains(t, samples[2], "device")
	assert.NotContains(t, samples[2], "power_watts", "unknown is left out")
	assert.Equal(t, []any{map[string]any{"backend": "rocm", "reason": "telemetry: not here: no such device"}},
		doc["missing"])
}

// An interrupt ends it well, with what there is; also while a driver hangs.
func TestTopInterrupt(t *testing.T) {
	for name, read := range map[string]func(ctx context.Context) ([]telemetry.Sample, error){
		"between": func(context.Context) ([]telemetry.Sample, error) { return twoSamples(), nil },
		"hanging": func(ctx context.Context) ([]telemetry.Sample, error) {
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond)
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			var out bytes.Buffer
			a := app.New(&out, &out)
			a.JSON = true
			m := newMeter(driver.Config{}, nil, []telemetry.Reader{&fakeSensors{name: "cuda", read: read}})
			require.NoError(t, top(ctx, a, m, topOptions{interval: time.Hour}))
			assert.Contains(t, apptest.Document(t, out.String()), "samples")
		})
	}
	assert.NoError(t, orInterrupted(canceled(t), errors.New("interrupted")))
	assert.Error(t, orInterrupted(t.Context(), errors.New("broken")))
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A reader that does not answer is given up, and not asked again.
func TestMeterHangs(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	hangs := &fakeSensors{name: "cuda", read: func(context.Context) ([]telemetry.Sample, error) {
		<-stuck
		return nil, nil
	}}
	m := newMeter(driver.Config{ProbeTimeout: 20 * time.Millisecond}, nil,
		[]telemetry.Reader{hangs, answers("rocm", nil, telemetry.Sample{Backend: "rocm"})})
	list, missing := m.read(t.Context())
	assert.Len(t, list, 1)
	require.Len(t, missing, 1)
	assert.Contains(t, missing[0].Reason, "no answer in time")
	_, missing = m.read(t.Context())
	assert.Empty(t, missing)
	assert.Equal(t, 1, hangs.calls)
}

// A sample belongs to a device that has the same UUID or address; alone with it,
// also if neither has either.
func TestMeterDevice(t *testing.T) {
	lone := []runtime.Probe{{Backend: "rocm", Devices: []runtime.Info{{ID: "rocm:0", Backend: "rocm", UUID: "01"}}}}
	m := newMeter(driver.Config{}, lone, nil)
	assert.Equal(t, "rocm:0", m.device(&telemetry.Sample{Backend: "rocm", PCI: "0000:01:00.0"}, 1))
	assert.Empty(t, m.device(&telemetry.Sample{Backend: "rocm", UUID: "02"}, 1), "both have one, and not the same")
	assert.Empty(t, m.device(&telemetry.Sample{Backend: "rocm"}, 2), "which of two?")
	assert.Empty(t, m.device(&telemetry.Sample{Backend: "cuda"}, 1))
}

func TestProcessor(t *testing.T) {
	stat := func(line string) string { return apptest.TextFile(t, "stat", line+"\ncpu0 1 1 1 1\n") }
	assert.Equal(t, ticks{busy: 10 + 1 + 5 + 2 + 3 + 4, total: 10 + 1 + 5 + 100 + 50 + 2 + 3 + 4},
		readTicks(stat("cpu  10 1 5 100 50 2 3 4 9 9")), "guests are part of user")
	assert.Equal(t, ticks{busy: 16, total: 116}, readTicks(stat("cpu 10 1 5 100")))
	for _, bad := range []string{"", "cpu", "cpu 1 2 3", "cpu 1 2 3 x", "intr 1 2 3 4"} {
		assert.Zero(t, readTicks(stat(bad)), bad)
	}
	assert.Zero(t, readTicks(filepath.Join(t.TempDir(), "none")))

	info := runtime.Info{Name: "A CPU", TotalMemory: 100, FreeMemory: 30, FreeMemoryKnown: true}
	p := &processor{info: func() runtime.Info { return info }, stat: stat("cpu 40 0 0 60"),
		ticks: ticks{busy: 10, total: 50}}
	list, err := p.Sample(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []telemetry.Sample{{Backend: "cpu", Name: "A CPU", Time: list[0].Time, Busy: new(60.0),
		MemoryUsed: new(int64(70)), MemoryFree: new(int64(30)), MemoryTotal: new(int64(100))}}, list)

	p = &processor{info: func() runtime.Info { return runtime.Info{} }, stat: filepath.Join(t.TempDir(), "none")}
	list, err = p.Sample(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []telemetry.Sample{{Backend: "cpu", Time: list[0].Time}}, list, "nothing is known")
}

// A terminal is redrawn in place, and nothing wraps or scrolls.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{w: &out, redraws: true, size: func() (int, int) { return 5, 3 }}
	require.NoError(t, s.show("\x1b[1mabcdefg\x1b[0m\näöü\nthird\n", false))
	assert.Equal(t, "\x1b[2J\x1b[Habcd…\x1b[K\näöü\x1b[K\n\x1b[J", out.String())
	out.Reset()
	require.NoError(t, s.show("\x1b[1mab\x1b[0m\n", true))
	assert.Equal(t, "\x1b[H\x1b[1mab\x1b[0m\x1b[K\n\x1b[J", out.String(), "what fits keeps its colours")
}

// The command as it is, on the machine as it is.
func TestTop(t *testing.T) {
	status, stdout, stderr := apptest.Run("top", "--count", "2", "--interval", "10ms")
	require.Equal(t, app.ExitOK, status, stderr)
	assert.Equal(t, 2, strings.Count(stdout, "cpu:0"), stdout)
	for _, backend := range []string{"cuda", "rocm"} {
		assert.LessOrEqual(t, strings.Count(stdout, "\n"+backend+": "), 1, "why is said once, if there is a why")
	}
	status, stdout, stderr = apptest.Run("top", "--json", "--device", "cpu:0")
	require.Equal(t, app.ExitOK, status, stderr)
	samples := apptest.Document(t, stdout)["samples"].([]any)
	require.Len(t, samples, 1)
	assert.Equal(t, "cpu:0", samples[0].(map[string]any)["device"])
	for _, args := range [][]string{{"--interval", "0s"}, {"--count", "-1"}, {"--device", "toaster:0"},
		{"--device", "opencl:0"}, {"extra"}} {
		status, stdout, stderr := apptest.Run(append([]string{"top"}, args...)...)
		assert.Equal(t, app.ExitUsage, status, args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "--help")
	}
	status, _, stderr = apptest.Run("top", "--device", "cpu:9", "--count", "1")
	assert.Equal(t, app.ExitFailed, status)
	assert.Contains(t, stderr, "no such device")
}

func TestDevicesTelemetry(t *testing.T) {
	m := newMeter(driver.Config{}, twoGPUs, []telemetry.Reader{answers("cuda", nil, twoSamples()...)})
	list, _ := m.read(t.Context())
	text, err := json.Marshal(withTelemetry(twoGPUs, list))
	require.NoError(t, err)
	var got []struct {
		Backend string
		State   string
		Devices []struct {
			ID        string
			Telemetry map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(text, &got))
	require.Len(t, got, 1)
	assert.Equal(t, "available", got[0].State)
	require.Len(t, got[0].Devices, 2)
	for i, want := range []string{"Second", "First"} {
		assert.Equal(t, fmt.Sprintf("cuda:%d", i), got[0].Devices[i].ID)
		assert.Equal(t, want, got[0].Devices[i].Telemetry["name"])
	}
	// Without sensors nothing is added.
	text, err = json.Marshal(withTelemetry(twoGPUs, nil))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "telemetry")
}
