//go:build watchedchoices

package tune

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
)

// elsewhere are the choices that the launches of their subject read on other processors, or not in every run.
var elsewhere = map[string]string{
	"cpu.conv.deep":       "registers of 32 bytes or less",
	"cpu.gemm.block":      "registers of 64 bytes",
	"cpu.gemm.block.avx2": "registers of 32 bytes or less",
	"cpu.rows.past":       "results that are larger than the third-level cache",
	"cpu.threads.spin":    "a thread that waits for another one, if it has to",
	"cpu.threads.yield":   "a thread waits so long only for one that was stopped",
	"cpu.threads.sleep":   "a thread waits so long only for one that was stopped",
}

// TestSubjectsRead launches the points of every subject, but for the largest, and compares the choices that the
// launches read with those that the subject has:
//
//	go test -tags watchedchoices -run SubjectsRead ./runtime/tune
func TestSubjectsRead(t *testing.T) {
	s, err := runtime.New(runtime.Config{Validate: -1, Tune: "off"})
	require.NoError(t, err)
	defer s.Close()
	dev, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	if !slices.ContainsFunc(strings.Fields(dev.Choices().TunedFor()), func(w string) bool {
		return slices.Contains([]string{"avx2,", "avx512,", "neon,"}, w)
	}) {
		t.Skip("there are no vector functions")
	}
	for _, subject := range catalog() {
		t.Run(subject.Name, func(t *testing.T) {
			m := &measurement{session: s, dev: dev}
			m.free()
			defer m.free()
			var mu sync.Mutex
			read := map[string]bool{}
			watch := choice.Watch(func(c *choice.Choice) {
				mu.Lock()
				defer mu.Unlock()
				read[c.Name] = true
			})
			defer dev.Choices().Try(nil)
			names := map[string]bool{}
			for _, p := range subject.Points {
				assert.False(t, names[p.Name], "two sizes are named %s", p.Name)
				names[p.Name] = true
				if p.Flops > 3e9 || p.Bytes > 300e6 {
					continue
				}
				l, err := m.prepare(t.Context(), &p)
				require.NoError(t, err, p.Name)
				own, err := m.build(t.Context(), &p, watch)
				require.NoError(t, err, p.Name)
				dev.Choices().Try(watch)
				require.NoError(t, dev.Stream().Launch(own.kernel, own.grid, l.args...), p.Name)
				require.NoError(t, dev.Stream().Sync(t.Context()), p.Name)
				dev.Choices().Try(nil)
				require.NoError(t, own.program.Close())
			}
			for _, c := range subject.choices(choice.All()) {
				if elsewhere[c.Name] == "" {
					assert.True(t, read[c.Name], "no launch reads %s", c.Name)
				}
			}
			t.Log(slices.Sorted(maps.Keys(read)))
		})
	}
}
