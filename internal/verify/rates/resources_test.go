package rates

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/profile"
)

// The kernel that took the most time is described, as its longest launch was.
func TestResources(t *testing.T) {
	launch := func(name string, took int64, group [3]int, registers int) profile.Event {
		return profile.Event{Kind: profile.Launch, Name: name, Detail: "cuda", Device: "cuda:0", End: took, Group: group,
			Registers: registers, SpillBytes: 12, LocalBytes: 4096}
	}
	list := ranking([]profile.Event{
		{Kind: profile.Copy, Name: "host to device", Device: "cuda:0", End: 1000},
		launch("small", 5, [3]int{64}, 16), launch("reduce", 30, [3]int{128, 1}, 32),
		launch("gemm", 20, [3]int{16, 8, 1}, 40), launch("gemm", 45, [3]int{16, 16, 1}, 255),
		{Kind: profile.Launch, Name: "elsewhere", Device: "cpu:0", End: 1000},
		{Kind: profile.Launch, Name: "failed", Device: "cuda:0", End: 1000, Err: runtime.ErrLaunch},
	}, "cuda:0")
	assert.Equal(t, "gemm cuda 65 %, reduce cuda 30 %", list.String())
	info := runtime.Info{Backend: "cuda", Arch: "sm_90", SubgroupSize: 32}
	assert.Equal(t, "gemm: 255 registers, 12 bytes spilled, 4096 bytes of shared memory, "+
		"on a multiprocessor 1 group of 256 items, 8 of 64 warps (12.5 %), limited by registers", list.resources(info))
	assert.Equal(t, "gemm: 255 registers, 12 bytes spilled, 4096 bytes of shared memory, groups of 256 items",
		list.resources(runtime.Info{Backend: "cuda", Arch: "sm_999"}))
	list[0].Registers = 0
	assert.Empty(t, list.resources(info), "its compiler reports nothing")
	assert.Empty(t, ranks(nil).resources(info))
	assert.Empty(t, ranks(nil).String())
}

// A rate is slow below half of the roof, or of the peer's where there is no roof; of a time more is slow.
func TestSlow(t *testing.T) {
	for _, c := range []struct {
		unit               string
		median, roof, peer float64
		slow               bool
	}{
		{gigabytes, 49, 100, 0, true}, {gigabytes, 51, 100, 1000, false}, {gigabytes, 49, 0, 100, true},
		{gigabytes, 1, 0, 0, false}, {micros, 21, 0, 10, true}, {micros, 19, 0, 10, false}, {micros, 5, 0, 0, false},
	} {
		r := Rate{Unit: c.unit, Median: c.median, Roof: c.roof, PeerMedian: c.peer}
		assert.Equal(t, c.slow, r.Slow(), "%+v", c)
	}
}
