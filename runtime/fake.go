package runtime

// Fake devices: discovery without hardware, for tests of programs that choose a device. A fake
// can be listed, but not opened.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// maxFakes limits the number of devices, against typing mistakes.
const maxFakes = 1024

// lookFake does discovery as CONCORD_FAKE_DEVICES describes it. The host's processor is not
// replaced: there is always a device that works.
func (s *Session) lookFake(ctx context.Context, again bool) ([]Probe, error) {
	value := *s.cfg.FakeDevices
	if s.cfg.Strict {
		return nil, fmt.Errorf("CONCORD_FAKE_DEVICES=%s refused by CONCORD_STRICT=1: %w", value, driver.ErrFakeDevice)
	}
	probes := s.fakeProbes(value)
	for _, b := range s.backends() {
		if !driver.Describe(b).Host {
			continue
		}
		p, err := s.look(ctx, b, again)
		if err != nil {
			return nil, err
		}
		probes = append(probes, p)
	}
	return number(probes), nil
}

// fakeProbes returns the entries of backends that can be faked, in the order of preference: all but
// the host's and simulated ones. A reserved name without a backend is listed if the value contains
// it, or if Discover lists it without fakes.
func (s *Session) fakeProbes(value string) []Probe {
	var names []string
	words := map[string]string{} // aliases and names, and the backend that each means
	for name, d := range s.descriptions() {
		if d.Host || driver.IsSimulated(name) {
			continue
		}
		names = append(names, name)
		for _, alias := range d.Aliases {
			words[alias] = name
		}
	}
	for _, name := range names {
		words[name] = name
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(s.describe(b).Preference, s.describe(a).Preference)
	})
	counts := countFakes(value, words)
	var probes []Probe
	for _, name := range names {
		n := counts[name]
		switch {
		case n > 0:
			probes = append(probes, fakeProbe(name, n))
		case s.backend(name) != nil || slices.Contains(driver.BackendNames(), name):
			probes = append(probes, Probe{Backend: name, State: driver.Unavailable,
				Reason: "CONCORD_FAKE_DEVICES replaces discovery and does not name it",
				Remedy: "unset CONCORD_FAKE_DEVICES, or name the backend there"})
		}
	}
	return probes
}

// countFakes finds the words that occur anywhere in the value, each optionally followed by a number
// of devices, and returns the number of devices of each backend.
func countFakes(value string, words map[string]string) map[string]int {
	counts := map[string]int{}
	var patterns []string
	for _, word := range slices.SortedFunc(maps.Keys(words), func(a, b string) int { return len(b) - len(a) }) {
		patterns = append(patterns, regexp.QuoteMeta(word)) // longer words come before their own beginnings
	}
	found := regexp.MustCompile(`(` + strings.Join(patterns, "|") + `)(?::(\d+))?`)
	for _, m := range found.FindAllStringSubmatch(strings.ToLower(value), -1) {
		name, n := words[m[1]], 1
		if m[2] != "" {
			if n, _ = strconv.Atoi(m[2]); n > maxFakes || len(m[2]) > 9 {
				n = maxFakes
			}
		}
		if _, seen := counts[name]; !seen && n > 0 {
			counts[name] = n
		}
	}
	return counts
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
