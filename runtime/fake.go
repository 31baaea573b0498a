package runtime

// Fake devices: discovery for tests of programs that choose a device, without
// the hardware. A fake can be listed and planned with, never opened.

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// fakeName finds the names that count anywhere in the value, with an optional
// number of devices right behind.
var fakeName = regexp.MustCompile(`(cuda|metal|rocm|opencl|webgpu|wgpu)(?::(\d+))?`)

// maxFakes bounds what a typing mistake can ask for.
const maxFakes = 1024

// lookFake is discovery as CONCORD_FAKE_DEVICES describes it. The CPU stays what it
// is: there is always a device that works.
func (s *Session) lookFake(ctx context.Context, again bool) ([]Probe, error) {
	value := *s.cfg.FakeDevices
	if s.cfg.Strict {
		return nil, fmt.Errorf("CONCORD_FAKE_DEVICES=%s refused by CONCORD_STRICT=1: %w", value, ErrFakeDevice)
	}
	probes := fakeProbes(value)
	if b := s.backend("cpu"); b != nil {
		p, err := s.look(ctx, b, again)
		if err != nil {
			return nil, err
		}
		probes = append(probes, p)
	}
	return number(probes), nil
}

func fakeProbes(value string) []Probe {
	counts := map[string]int{}
	for _, m := range fakeName.FindAllStringSubmatch(strings.ToLower(value), -1) {
		name, n := m[1], 1
		if name == "wgpu" {
			name = "webgpu"
		}
		if m[2] != "" {
			if n, _ = strconv.Atoi(m[2]); n > maxFakes || len(m[2]) > 9 {
				n = maxFakes
			}
		}
		if _, seen := counts[name]; !seen && n > 0 {
			counts[name] = n
		}
	}
	var probes []Probe
	for _, name := range []string{"cuda", "rocm", "metal", "opencl", "webgpu"} {
		n := counts[name]
		switch {
		case n > 0:
			probes = append(probes, fakeProbe(name, n))
		case name != "webgpu": // no backend of ours: it exists only as a fake
			probes = append(probes, Probe{Backend: name, State: driver.Unavailable,
				Reason: "CONCORD_FAKE_DEVICES replaces discovery and does not name it",
				Remedy: "unset CONCORD_FAKE_DEVICES, or name the backend there"})
		}
	}
	return probes
}

func fakeProbe(backend string, n int) Probe {
	p := Probe{Backend: backend, State: driver.Fake, Reason: "pretended by CONCORD_FAKE_DEVICES"}
	for i := range n {
		p.Devices = append(p.Devices, Info{
			ID: fmt.Sprintf("%s:%d", backend, i), Backend: backend, NativeIndex: i,
			Name: fmt.Sprintf("fake %s device %d", backend, i), Kind: driver.Discrete, Fake: true,
		})
	}
	return p
}
