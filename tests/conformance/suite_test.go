package conformance

// Tests of the suite itself: it has to fail when it should. They run it in a child process, because
// its failures fail the process in which it runs.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	rows "github.com/concord-compute/concord/runtime/conformance"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Variables of a child process: the device that TestSuite opens, and its exceptions as JSON.
const (
	suiteDevice = "CONFORMANCE_SUITE_DEVICE"
	suiteExcept = "CONFORMANCE_SUITE_EXCEPT"
)

// compilerRow stands for every row that runs programs, if it is listed.
const compilerRow = "kernel/compiler"

// TestSuite runs the suite in a child process.
func TestSuite(t *testing.T) {
	device := os.Getenv(suiteDevice)
	if device == "" {
		t.Skip("the other tests run it, in a process of its own")
	}
	var except Exceptions
	require.NoError(t, json.Unmarshal([]byte(os.Getenv(suiteExcept)), &except))
	for _, b := range []driver.Backend{hollow{}, onCPU{"nolaunch"}, onCPU{"noprograms"}, onCPU{"once"}, onCPU{"late"},
		driver.Missing("missing", driver.Unavailable, "no such hardware")} {
		driver.Register(b)
	}
	open := func(t *testing.T) *runtime.Device { return Open(t, device) }
	if name, own := strings.CutSuffix(device, " opened by a test"); own {
		open = func(t *testing.T) *runtime.Device {
			d, err := runtime.Open(t.Context(), name)
			if err != nil {
				t.Skip(err)
			}
			if why := d.Fallback(); why != nil {
				t.Skip(why)
			}
			return d
		}
	}
	Run(t, open, except)
}

// outcome is the result of the suite in a child process: "PASS", "FAIL" or "SKIP" by row.
type outcome struct {
	rows   map[string]string
	passed bool // the process exited with 0
	text   string
}

// with lists the rows with that outcome.
func (o outcome) with(word string) (rows []string) {
	for row, got := range o.rows {
		if got == word {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return rows
}

var verdict = regexp.MustCompile(`--- (PASS|FAIL|SKIP): TestSuite/(\S+) `)

// suite runs the rows that match a pattern in a child process.
func suite(t *testing.T, device, rows string, except Exceptions, env ...string) outcome {
	t.Helper()
	list, err := json.Marshal(except)
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestSuite$/"+rows)
	c.Env = append(append(os.Environ(), "CONCORD_REQUIRE=", suiteDevice+"="+device, suiteExcept+"="+string(list)), env...)
	text, err := c.CombinedOutput()
	o := outcome{rows: map[string]string{}, passed: err == nil, text: string(text)}
	for _, m := range verdict.FindAllStringSubmatch(o.text, -1) {
		o.rows[m[2]] = m[1]
	}
	return o
}

// TestSuiteNothingFails: a backend that returns ErrUnsupported from every call fails every row.
func TestSuiteNothingFails(t *testing.T) {
	o := suite(t, "hollow:0", "", Exceptions{})
	assert.False(t, o.passed)
	assert.Len(t, o.with("FAIL"), len(rows.Rows()), "passed: %v, skipped: %v\n%s", o.with("PASS"), o.with("SKIP"), o.text)
}

// TestSuiteNoLaunch: with a Launch that returns ErrUnsupported, every row that launches fails. The
// suite passes if they are listed.
func TestSuiteNoLaunch(t *testing.T) {
	needPrograms(t)
	o := suite(t, "nolaunch:0", "", Exceptions{})
	assert.False(t, o.passed)
	for _, c := range rows.Rows() {
		// These rows launch nothing, or only launches that are refused earlier.
		without := []string{"error/build", "error/fault", "kernel/info", "lifetime/foreign", "limit/nil_context"}
		if c.Portable && !slices.Contains(without, c.Name) {
			assert.Equal(t, "FAIL", o.rows[c.Name], c.Name)
		}
	}
	assert.Equal(t, []string{"across/library", "across/neighbour", "error/fault"}, o.with("SKIP"),
		"what Info or the driver accounts for")
	except := Exceptions{
		Unsupported: map[string]string{"kernel/occupancy": "not implemented", "memory/wrapped": "not implemented"},
		Failing:     map[string]string{}}
	for _, row := range o.with("FAIL") {
		if except.Unsupported[row] == "" {
			except.Failing[row] = "no launches"
		}
	}
	listed := suite(t, "nolaunch:0", "", except)
	assert.True(t, listed.passed, listed.text)
	assert.Empty(t, listed.with("FAIL"))
	assert.Equal(t, o.with("PASS"), listed.with("PASS"))
}

// TestSuiteNoPrograms: a device that is not a Compiler fails each row that runs programs, and one
// entry in the list covers them all.
func TestSuiteNoPrograms(t *testing.T) {
	o := suite(t, "noprograms:0", "", Exceptions{})
	assert.False(t, o.passed)
	var want []string
	for _, c := range rows.Rows() {
		if c.Portable || c.Name == compilerRow {
			want = append(want, c.Name)
		}
	}
	slices.Sort(want)
	assert.Equal(t, want, o.with("FAIL"), o.text)
	listed := suite(t, "noprograms:0", "", Exceptions{Unsupported: map[string]string{compilerRow: "no compiler yet"}})
	assert.True(t, listed.passed, listed.text)
	assert.Equal(t, o.with("PASS"), listed.with("PASS"))
}

// TestSuiteExceptions: mistakes in the lists are failures.
func TestSuiteExceptions(t *testing.T) {
	row := func(name, reason string) map[string]string { return map[string]string{name: reason} }
	for what, c := range map[string]struct {
		device, rows string
		except       Exceptions
		want         string // text in the output of a process that fails; "" for one that passes
	}{
		"none":             {"cpu:0", "memory/views", Exceptions{}, ""},
		"skip, not listed": {"noprograms:0", "kernel/compiler", Exceptions{}, "not in Exceptions.Unsupported"},
		"skip, listed": {"noprograms:0", "kernel/compiler", Exceptions{Unsupported: row("kernel/compiler", "later")},
			""},
		"skip, for a failure": {"noprograms:0", "kernel/compiler", Exceptions{Failing: row("kernel/compiler", "later")},
			"not in Exceptions.Unsupported"},
		"not skipped": {"cpu:0", "memory/views", Exceptions{Unsupported: row("memory/views", "later")},
			"was not skipped"},
		"not failing":          {"cpu:0", "memory/views", Exceptions{Failing: row("memory/views", "later")}, "and passed"},
		"failing":              {"hollow:0", "memory/views", Exceptions{Failing: row("memory/views", "later")}, ""},
		"failing, and goes on": {"hollow:0", "info/mandatory", Exceptions{Failing: row("info/mandatory", "later")}, ""},
		"failing, as a skip": {"hollow:0", "memory/views", Exceptions{Unsupported: row("memory/views", "later")},
			"not supported here"},
		"no row": {"cpu:0", "memory/views", Exceptions{Failing: row("memory/vews", "later")},
			`no row "memory/vews"`},
		"no reason": {"noprograms:0", "kernel/compiler", Exceptions{Unsupported: row("kernel/compiler", "")},
			"kernel/compiler has no reason"},
		"in both": {"noprograms:0", "kernel/compiler", Exceptions{Unsupported: row("kernel/compiler", "x"),
			Failing: row("kernel/compiler", "y")}, "both as unsupported and as failing"},
		"available, not open": {"late:0", "memory/v", Exceptions{}, "is available, but its first device"},
		"gone": {"once:0 opened by a test", "memory/v|memory/many", Exceptions{},
			"present for one row and missing for another"},
		"late": {"late:0 opened by a test", "memory/v|memory/many", Exceptions{},
			"present for one row and missing for another"},
	} {
		o := suite(t, c.device, c.rows, c.except)
		assert.NotEmpty(t, o.rows, "%s: %s", what, o.text)
		assert.Equal(t, c.want == "", o.passed, "%s: %s", what, o.text)
		assert.Contains(t, o.text, c.want, what)
	}
}

// TestSuiteRequire: CONCORD_REQUIRE accepts the name of any backend of the program, and no other
// name.
func TestSuiteRequire(t *testing.T) {
	const row = "memory/views"
	assert.Equal(t, []string{row}, suite(t, "missing:0", row, Exceptions{}).with("SKIP"))
	for device, env := range map[string]string{"missing:0": "missing", "cpu:0": "mising",
		"noprograms:0": "cpu,noprogram"} {
		o := suite(t, device, row, Exceptions{}, "CONCORD_REQUIRE="+env)
		assert.Equal(t, []string{row}, o.with("FAIL"), "%s requires %s: %s", device, env, o.text)
	}
	o := suite(t, "noprograms:0", row, Exceptions{}, "CONCORD_REQUIRE=noprograms,opencl")
	assert.Equal(t, []string{row}, o.with("PASS"), o.text)
}

func needPrograms(t *testing.T) {
	t.Helper()
	_, err := Open(t, "cpu:0").Driver().(driver.Compiler).Identity(t.Context())
	if errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrNoDevice) {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// onCPU is a backend over cpu:0 without the feature that its name says.
type onCPU struct{ name string }

func (b onCPU) Name() string { return b.name }

func (b onCPU) describe(info driver.Info) driver.Info {
	info.ID, info.Backend = b.name+":0", b.name
	return info
}

func (b onCPU) Probe(ctx context.Context, cfg *driver.Config) driver.Probe {
	p := cpuBackend().Probe(ctx, cfg)
	p.Backend, p.Devices = b.name, []driver.Info{b.describe(p.Devices[0])}
	return p
}

// opened counts the calls of Open: "once" opens only at the first, and "late" only after it.
var opened atomic.Int32

func (b onCPU) Open(ctx context.Context, index int, cfg *driver.Config) (driver.Device, error) {
	if n := opened.Add(1); b.name == "once" && n > 1 || b.name == "late" && n == 1 {
		return nil, driver.ErrNoDevice
	}
	d, err := cpuBackend().Open(ctx, index, cfg)
	if err != nil {
		return nil, err
	}
	plain := plainDevice{d, b}
	if b.name == "nolaunch" {
		return compilerDevice{plain, d.(driver.Compiler)}, nil
	}
	return plain, nil
}

func cpuBackend() driver.Backend {
	list := driver.Backends()
	return list[slices.IndexFunc(list, func(b driver.Backend) bool { return b.Name() == "cpu" })]
}

// plainDevice has no optional interface, and its streams cannot launch.
type plainDevice struct {
	driver.Device
	backend onCPU
}

func (d plainDevice) Info() driver.Info { return d.backend.describe(d.Device.Info()) }

func (d plainDevice) NewStream() (driver.Stream, error) {
	s, err := d.Device.NewStream()
	return noLaunch{s}, err
}

type compilerDevice struct {
	plainDevice
	driver.Compiler
}

type noLaunch struct{ driver.Stream }

func (noLaunch) Launch(*driver.Launch) error { return driver.ErrUnsupported }

// hollow is a backend with two devices that can be opened and do nothing: all their calls,
// mandatory and optional, return ErrUnsupported.
type hollow struct{}

func (hollow) Name() string { return "hollow" }
func (hollow) Probe(context.Context, *driver.Config) driver.Probe {
	return driver.Probe{Backend: "hollow", State: driver.Available, Devices: []driver.Info{
		hollowDevice{0}.Info(), hollowDevice{1}.Info()}}
}
func (hollow) Open(_ context.Context, index int, _ *driver.Config) (driver.Device, error) {
	return hollowDevice{index}, nil
}

var errHollow = driver.ErrUnsupported

type hollowDevice struct{ index int }

func (d hollowDevice) Info() driver.Info {
	return driver.Info{ID: fmt.Sprint("hollow:", d.index), Backend: "hollow", NativeIndex: d.index}
}
func (hollowDevice) Alloc(int64, driver.MemoryKind) (driver.Memory, error) {
	return driver.Memory{}, errHollow
}
func (hollowDevice) Free(driver.Memory) error                                 { return errHollow }
func (hollowDevice) NewStream() (driver.Stream, error)                        { return hollowStream{}, nil }
func (hollowDevice) NewPriorityStream(driver.Priority) (driver.Stream, error) { return nil, errHollow }
func (hollowDevice) Identity(context.Context) ([]string, error)               { return nil, errHollow }
func (hollowDevice) CanCopyFrom(driver.Device) (can, direct bool)             { return true, true }
func (hollowDevice) Occupancy(driver.Kernel, int, int64) (int, error)         { return 0, errHollow }
func (hollowDevice) SuggestGroup(driver.Kernel, int64) (int, error)           { return 0, errHollow }
func (hollowDevice) HostBytes(driver.Memory) ([]byte, bool)                   { return nil, false }
func (hollowDevice) Close() error                                             { return nil }
func (hollowDevice) Load(context.Context, *source.Unit, driver.Binary) (driver.Module, error) {
	return nil, errHollow
}
func (hollowDevice) Compile(context.Context, *source.Unit, []string) (driver.Binary, error) {
	return driver.Binary{}, errHollow
}
func (hollowDevice) CopyFrom(driver.Stream, driver.Memory, driver.Device, driver.Memory) error {
	return errHollow
}

type hollowStream struct{}

func (hollowStream) Upload(context.Context, driver.Memory, []byte) error   { return errHollow }
func (hollowStream) Download(context.Context, []byte, driver.Memory) error { return errHollow }
func (hollowStream) UploadPinned(dst, src driver.Memory) error             { return errHollow }
func (hollowStream) DownloadPinned(dst, src driver.Memory) error           { return errHollow }
func (hollowStream) Copy(dst, src driver.Memory) error                     { return errHollow }
func (hollowStream) Fill(driver.Memory, []byte) error                      { return errHollow }
func (hollowStream) Prefetch(driver.Memory, bool) error                    { return errHollow }
func (hollowStream) AllocHere(int64) (driver.Memory, error)                { return driver.Memory{}, errHollow }
func (hollowStream) FreeHere(driver.Memory) error                          { return errHollow }
func (hollowStream) BeginCapture() error                                   { return errHollow }
func (hollowStream) EndCapture(driver.Graph) (driver.Graph, error)         { return nil, errHollow }
func (hollowStream) DropCapture() error                                    { return errHollow }
func (hollowStream) Launch(*driver.Launch) error                           { return errHollow }
func (hollowStream) Record(bool) (driver.Event, error)                     { return nil, errHollow }
func (hollowStream) Wait(driver.Event) error                               { return errHollow }
func (hollowStream) Sync(context.Context) error                            { return errHollow }
func (hollowStream) Err() error                                            { return nil }
func (hollowStream) Close() error                                          { return nil }
