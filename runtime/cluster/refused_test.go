package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// TestOfRefuses has no device among devices.
func TestOfRefuses(t *testing.T) {
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, dev.Close()) }()
	for _, devs := range [][]*runtime.Device{{nil, dev}, {dev, nil}, {nil, nil}, {dev, dev}} {
		_, err := Of(devs...)
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
}

// TestOpenRefusesOthers names a device that is not here: another one that would take its place is none of the group.
func TestOpenRefusesOthers(t *testing.T) {
	t.Setenv("CONCORD_FALLBACK", "prefer")
	_, err := Open(t.Context(), "cpu:0", "opencl:77")
	require.Error(t, err)
	assert.ErrorContains(t, err, "member 1")
}

// TestLeft closes a group while one member waits for the others, and another one is on its way: that one does not take
// the first for one that takes part.
func TestLeft(t *testing.T) {
	g := virtual(t, 2, Options{})
	h := g.Members()[0].port.(*localPort).hub
	waits := func(rank int) error {
		m := g.Members()[rank]
		c := &call{m: m, ctx: deadline(t), s: m.own, rank: rank, size: 2}
		return m.port.agree(c, entry{s: m.own})
	}
	first := make(chan error)
	go func() { first <- waits(0) }()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.meeting.arrived == 1
	}, time.Minute, time.Millisecond)
	g.Members()[0].port.leave()
	assert.Equal(t, errLeft, <-first)
	assert.Equal(t, errLeft, waits(1))
}

// TestRefusedTransferInDo has two of three members refuse a transfer while the third waits in a collective.
func TestRefusedTransferInDo(t *testing.T) {
	g := virtual(t, 3, Options{})
	err := g.Do(deadline(t), func(ctx context.Context, m *Member) error {
		b, err := runtime.Alloc[float32](m.Device(), 4+m.Rank())
		if err != nil {
			return err
		}
		defer b.Close()
		switch m.Rank() {
		case 0:
			return m.Send(ctx, nil, 1, b)
		case 1:
			return m.Recv(ctx, nil, 0, b)
		}
		return m.Barrier(ctx, nil)
	})
	agreed(t, []error{err, g.Err()}, 1, runtime.ErrInvalidArgument)
}

// TestBarrierLate has work of one member that does not end in time: all name that member, and say so once.
func TestBarrierLate(t *testing.T) {
	g := virtual(t, 2, Options{Timeout: soon})
	release := make(chan struct{})
	defer close(release)
	misbehave(t, g.Members()[1], g.Members()[1].Stream(), func() error { <-release; return nil })
	errs := do([]*Group{g}, func(m *Member) error {
		if m.Rank() == 0 {
			time.Sleep(soon / 2) // so that it does not wait longer than the time for the other one
		}
		return m.Barrier(deadline(t), nil)
	})
	agreed(t, errs, 1, driver.ErrTimeout)
	assert.Equal(t, fmt.Sprintf("cluster: member 1: no answer in %v: %v", soon, driver.ErrTimeout), errs[0].Error())
}

// TestPrepared holds that a member builds before it agrees what its sums launch: all but those of a tree are known.
func TestPrepared(t *testing.T) {
	for size := 2; size <= 5; size++ {
		for _, by := range []Algorithm{Direct, Ring} {
			g := virtual(t, size, Options{Algorithm: by})
			m := g.Members()[0]
			r := &request{kind: allReduce, op: Mean, typ: runtime.F16, n: 8, by: g.options.choose(size, 16, true)}
			c := &call{m: m, ctx: t.Context(), s: m.own, rank: 0, size: size}
			require.NoError(t, c.prepare(r))
			built := slices.Collect(maps.Keys(g.folds.list))
			(&trial[runtime.Float16]{deadline(t), []*Group{g}, by == Ring, size, 8}).all(t, Mean)
			assert.ElementsMatch(t, built, slices.Collect(maps.Keys(g.folds.list)), "%d members, %v", size, by)
		}
	}
}

// TestNames has names that stand for several devices, for one, and for none.
func TestNames(t *testing.T) {
	list, err := Names(t.Context(), nil, "opencl:7", "cpu:*", "auto")
	require.NoError(t, err)
	require.Contains(t, list, "cpu:0")
	assert.Equal(t, "opencl:7", list[0])
	assert.Equal(t, "auto", list[len(list)-1])
	list, err = Names(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, list)
	session, err := runtime.New(runtime.Config{Backends: []driver.Backend{}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, session.Close()) }()
	for _, s := range []*runtime.Session{nil, session} {
		_, err = Names(t.Context(), s, "cpu:0", "abacus:*")
		assert.ErrorIs(t, err, runtime.ErrNoDevice)
		assert.ErrorContains(t, err, "abacus:*")
	}
}
