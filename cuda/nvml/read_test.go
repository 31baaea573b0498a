//go:build cgo && cuda && linux

package nvml

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

// over returns a reader that uses that library.
func over(lib nvml.Interface) *reader {
	return &reader{open: func(*driver.Config) (nvml.Interface, error) { return lib, nil }}
}

// sensors adds the missing functions to a device of the mock. Their numbers depend on the index, so
// that a test notices if devices are mixed up.
func sensors(d *dgxa100.Device) {
	n := uint32(d.Index)
	clock := func(base uint32) func(nvml.ClockType) (uint32, nvml.Return) {
		return func(c nvml.ClockType) (uint32, nvml.Return) {
			return base + 100*uint32(c) + n, nvml.SUCCESS
		}
	}
	d.MemoryInfo = nvml.Memory{Total: 40 << 30, Used: uint64(n) << 30, Free: uint64(40-n) << 30}
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		return nvml.PciInfo{Bus: 0x10 + n, BusId: [32]int8{'0'}}, nvml.SUCCESS
	}
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{Gpu: 90 + n, Memory: 50 + n}, nvml.SUCCESS
	}
	d.GetTemperatureFunc = func(s nvml.TemperatureSensors) (uint32, nvml.Return) {
		return 40 + n, nvml.SUCCESS
	}
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 250_500 + 1000*n, nvml.SUCCESS }
	d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 400_000, nvml.SUCCESS }
	d.GetFanSpeedFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	d.GetClockInfoFunc = clock(1000)
	d.GetMaxClockInfoFunc = clock(2000)
	d.GetEccModeFunc = func() (now, next nvml.EnableState, ret nvml.Return) {
		return nvml.FEATURE_ENABLED, nvml.FEATURE_DISABLED, nvml.SUCCESS
	}
	d.GetTotalEccErrorsFunc = func(e nvml.MemoryErrorType, c nvml.EccCounterType) (uint64, nvml.Return) {
		if c != nvml.VOLATILE_ECC {
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		return 5 + uint64(e), nvml.SUCCESS
	}
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) {
		return nvml.ClocksThrottleReasonSwPowerCap, nvml.SUCCESS
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return []nvml.ProcessInfo{
			{Pid: uint32(os.Getpid()), UsedGpuMemory: 1 << 30},
			{Pid: math.MaxInt32, UsedGpuMemory: math.MaxUint64}, // NVML's value for unknown
		}, nvml.SUCCESS
	}
}

// dgx is a machine with eight devices that have sensors.
func dgx() *dgxa100.Server {
	s := dgxa100.New()
	for i := range s.Devices {
		sensors(s.Devices[i].(*dgxa100.Device))
	}
	return s
}

func TestSample(t *testing.T) {
	server := dgx()
	list, err := over(server).Sample(t.Context(), &driver.Config{})
	require.NoError(t, err)
	require.Len(t, list, 8)
	for i, got := range list {
		assert.False(t, got.Time.IsZero())
		n := float64(i)
		assert.Equal(t, telemetry.Sample{
			Backend: "cuda", Index: i, Time: got.Time, Name: "Mock NVIDIA A100-SXM4-40GB",
			UUID: server.Devices[i].(*dgxa100.Device).UUID,
			PCI:  "0000:1" + string(rune('0'+i)) + ":00.0",
			Busy: new(90 + n), MemoryBusy: new(50 + n),
			MemoryUsed: new(int64(i) << 30), MemoryFree: new(int64(40-i) << 30), MemoryTotal: new(int64(40) << 30),
			Temperature: new(40 + n), Power: new(250.5 + n), PowerLimit: new(400.0),
			Clock: new(1100 + n), MemoryClock: new(1200 + n), MaxClock: new(2100 + n), MaxMemoryClock: new(2200 + n),
			ECC: new(true), ECCCorrected: new(int64(5)), ECCUncorrected: new(int64(6)),
			Throttle: []string{"power cap"},
			Processes: []telemetry.Process{
				{PID: os.Getpid(), Name: telemetry.ProcessName(os.Getpid()), MemoryUsed: new(int64(1 << 30))},
				{PID: math.MaxInt32},
			},
		}, got)
	}
}

// A device whose sensors all fail has an identity and no numbers.
func TestUnknown(t *testing.T) {
	for _, code := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION, nvml.ERROR_UNKNOWN} {
		server := dgxa100.New()
		deaf(server.Devices[2].(*dgxa100.Device), code)
		for i := range server.Devices {
			if i != 2 {
				sensors(server.Devices[i].(*dgxa100.Device))
			}
		}
		list, err := over(server).Sample(t.Context(), &driver.Config{})
		require.NoError(t, err)
		require.Len(t, list, 8)
		d := server.Devices[2].(*dgxa100.Device)
		assert.Equal(t, telemetry.Sample{Backend: "cuda", Index: 2, Time: list[2].Time, Name: d.Name, UUID: d.UUID}, list[2])
	}
}

// deaf makes every sensor of a device return that code.
func deaf(d *dgxa100.Device, code nvml.Return) {
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Bus: 1}, code }
	d.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 1}, code }
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 1}, code }
	d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 1, code }
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 1, code }
	d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 1, code }
	d.GetFanSpeedFunc = func() (uint32, nvml.Return) { return 1, code }
	d.GetClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 1, code }
	d.GetMaxClockInfoFunc = func(nvml.ClockType) (uint32, nvml.Return) { return 1, code }
	d.GetEccModeFunc = func() (a, b nvml.EnableState, ret nvml.Return) { return 1, 1, code }
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 1, code }
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 1, code }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 1, code }
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return []nvml.ProcessInfo{{}}, code }
}

// A lost device is an error, and the others are still read.
func TestLost(t *testing.T) {
	server := dgx()
	lost := server.Devices[3].(*dgxa100.Device)
	lost.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, nvml.ERROR_GPU_IS_LOST }
	handle := server.DeviceGetHandleByIndexFunc
	server.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 5 {
			return nil, nvml.ERROR_RESET_REQUIRED
		}
		return handle(i)
	}
	list, err := over(server).Sample(t.Context(), &driver.Config{})
	require.ErrorIs(t, err, driver.ErrDeviceLost)
	assert.ErrorContains(t, err, "NVML's device 3: the GPU has fallen off the bus")
	assert.ErrorContains(t, err, "NVML's device 5: the GPU needs a reset")
	require.Len(t, list, 8)
	assert.Equal(t, telemetry.Sample{Backend: "cuda", Index: 3, Time: list[3].Time, Name: lost.Name, UUID: lost.UUID,
		PCI: "0000:13:00.0"}, list[3],
		"which one it is, and no number of before")
	assert.Equal(t, telemetry.Sample{Backend: "cuda", Index: 5, Time: list[5].Time}, list[5])
	assert.NotNil(t, list[7].Busy)
}

// An older driver lacks functions; calling them would end the process.
func TestMissingSymbols(t *testing.T) {
	server := dgx()
	missing := map[string]bool{"nvmlDeviceGetTemperature": true, "nvmlDeviceGetCurrentClocksThrottleReasons": true}
	server.LookupSymbolFunc = func(symbol string) error {
		if missing[symbol] {
			return errors.New("undefined symbol")
		}
		return nil
	}
	for i := range server.Devices {
		d := server.Devices[i].(*dgxa100.Device)
		d.GetTemperatureFunc, d.GetCurrentClocksThrottleReasonsFunc = nil, nil // the mock panics
		d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0, nvml.SUCCESS }
	}
	list, err := over(server).Sample(t.Context(), &driver.Config{})
	require.NoError(t, err)
	assert.Nil(t, list[0].Temperature)
	assert.Equal(t, []string{}, list[0].Throttle, "under its newer name")
}

// Until Init has succeeded no other function is called; the mock would panic.
func TestInitFails(t *testing.T) {
	for _, tc := range []struct {
		code nvml.Return
		says string
	}{
		{nvml.ERROR_DRIVER_NOT_LOADED, "driver is not loaded"},
		{nvml.ERROR_LIBRARY_NOT_FOUND, "could not be loaded"},
		{nvml.ERROR_LIB_RM_VERSION_MISMATCH, "different versions"},
	} {
		calls := 0
		r := over(&mock.Interface{InitFunc: func() nvml.Return { calls++; return tc.code }})
		for range 2 {
			list, err := r.Sample(t.Context(), &driver.Config{})
			assert.Empty(t, list)
			require.ErrorIs(t, err, driver.ErrNoDevice)
			assert.ErrorContains(t, err, tc.says)
			var op *driver.OpError
			require.ErrorAs(t, err, &op)
			assert.Equal(t, int(tc.code), op.Code)
		}
		assert.Equal(t, 2, calls, "the next call looks again")
	}
}

func TestInitOnce(t *testing.T) {
	server := dgx()
	inits := 0
	server.InitFunc = func() nvml.Return { inits++; return nvml.SUCCESS }
	r := over(server)
	for range 3 {
		_, err := r.Sample(t.Context(), &driver.Config{})
		require.NoError(t, err)
	}
	assert.Equal(t, 1, inits)

	// Another part of the program has called Shutdown.
	count := server.DeviceGetCountFunc
	server.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNINITIALIZED }
	_, err := r.Sample(t.Context(), &driver.Config{})
	require.ErrorIs(t, err, driver.ErrNoDevice)
	server.DeviceGetCountFunc = count
	_, err = r.Sample(t.Context(), &driver.Config{})
	require.NoError(t, err)
	assert.Equal(t, 2, inits)

	server.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	_, err = r.Sample(t.Context(), &driver.Config{})
	require.ErrorIs(t, err, driver.ErrNoDevice)
}

// Several goroutines may call Sample at once, and NVML is initialized once.
func TestConcurrent(t *testing.T) {
	server := dgx()
	inits := 0
	server.InitFunc = func() nvml.Return { inits++; return nvml.SUCCESS }
	r := over(server)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			list, err := r.Sample(t.Context(), &driver.Config{})
			assert.NoError(t, err)
			assert.Len(t, list, 8)
		})
	}
	wg.Wait()
	assert.Equal(t, 1, inits)
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := over(dgx()).Sample(ctx, &driver.Config{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestThrottle(t *testing.T) {
	assert.Equal(t, []string{}, throttle(0))
	assert.Equal(t, []string{"idle"}, throttle(1))
	assert.Equal(t, []string{"hardware slowdown", "temperature (hardware)"}, throttle(0x48))
	assert.Equal(t, []string{"display clocks", "unknown reason 0x8000"}, throttle(0x8100))
	words := throttle(nvml.ClocksThrottleReasonAll)
	assert.Len(t, words, len(reasons), "every bit that NVML has")
}

// The library is missing, is another library, or has no driver. None of these ends the process.
func TestLibrary(t *testing.T) {
	list, err := newReader().Sample(t.Context(), &driver.Config{})
	if err != nil {
		assert.Empty(t, list)
		require.ErrorIs(t, err, driver.ErrNoDevice)
		t.Log(err)
	}
	_, err = newReader().Sample(t.Context(), &driver.Config{NVMLLibrary: "/no/such/libnvidia-ml.so.1"})
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, "/no/such/libnvidia-ml.so.1")
	_, err = newReader().Sample(t.Context(), &driver.Config{NVMLLibrary: "libc.so.6"})
	require.ErrorIs(t, err, driver.ErrNoDevice)
	assert.ErrorContains(t, err, "nvmlInit_v2", "it is no NVML")
}

// child is the variable with the library that TestChild reads. Symbols of NVML are bound once per
// process, so each library needs a process of its own.
const child = "_CONCORD_TEST_NVML"

// TestChild is the process that inChild starts.
func TestChild(t *testing.T) {
	path := os.Getenv(child)
	if path == "" {
		t.Skip("for other tests to start")
	}
	list, err := newReader().Sample(t.Context(), &driver.Config{NVMLLibrary: path})
	said := saying{Samples: list}
	if err != nil {
		said.Error = err.Error()
	}
	require.NoError(t, json.NewEncoder(os.Stderr).Encode(said))
}

// saying is the result of a child.
type saying struct {
	Samples []telemetry.Sample
	Error   string
}

// inChild builds a library and reads it in another process.
func inChild(t *testing.T, source string) (s saying) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	out, err := exec.Command(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path,
		source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), child+"="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err = cmd.Output()
	require.NoError(t, err, "%s%s", out, stderr.String())
	require.NoError(t, json.NewDecoder(strings.NewReader(stderr.String())).Decode(&s))
	return s
}

// A library that has NVML's symbols and finds no driver.
func TestLibraryWithoutDriver(t *testing.T) {
	s := inChild(t, "testdata/nodriver.c")
	assert.Empty(t, s.Samples)
	assert.Equal(t, "cuda: telemetry: init of NVML: the NVIDIA driver is not loaded: no such device (code 9)", s.Error)
}

// A library that lacks half of the functions is read through go-nvml itself: the values of existing
// functions are right, and those of missing functions are unknown and do not end the process.
func TestLibraryOfOldDriver(t *testing.T) {
	s := inChild(t, "testdata/onedevice.c")
	assert.Empty(t, s.Error)
	require.Len(t, s.Samples, 1)
	assert.Equal(t, telemetry.Sample{
		Backend: "cuda", Time: s.Samples[0].Time, Name: "NVIDIA Made Up",
		UUID: "GPU-01020304-0506-0708-090a-0b0c0d0e0f10", PCI: "0001:3b:02.0",
		Busy: new(70.0), MemoryBusy: new(20.0),
		MemoryUsed: new(int64(400)), MemoryFree: new(int64(600)), MemoryTotal: new(int64(1000)),
		Temperature: new(55.0), Power: new(99.5), Clock: new(1001.0), MemoryClock: new(1002.0),
		Throttle:  []string{"power cap"},
		Processes: []telemetry.Process{{PID: 2000000001, MemoryUsed: new(int64(123))}, {PID: 2000000002}},
	}, s.Samples[0])
}
