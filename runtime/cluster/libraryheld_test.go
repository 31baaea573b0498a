//go:build cgo && linux

package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// held returns work on a group of the machine: member 1 queues a copy that takes so long, and then all of several call
// a collective. noted gets how many communicators there are when a call of one returns.
func held(m *machine, took time.Duration, noted chan<- int64) func(ctx context.Context, g *Group) error {
	return func(ctx context.Context, g *Group) error {
		return g.Do(ctx, func(ctx context.Context, member *Member) error {
			if err := queued(ctx, member, 100); err != nil || g.Size() == 1 { // which opens the library
				return err
			}
			if member.Rank() == 1 {
				b, err := runtime.Alloc[float32](member.Device(), 200)
				if err != nil {
					return err
				}
				defer b.Close()
				to, err := b.Slice(0, 100)
				if err != nil {
					return err
				}
				defer to.Close()
				from, err := b.Slice(100, 100)
				if err != nil {
					return err
				}
				defer from.Close()
				if err = m.driver.Control(fmt.Sprintf("devices:2,slow-copy:%d", took.Milliseconds())); err == nil {
					err = member.Stream().Copy(to, from)
				}
				if err != nil {
					return err
				}
			}
			err := queued(ctx, member, 100)
			noted <- m.library.Count("communicators")
			return err
		})
	}
}

// TestLibraryEnds has a member whose work before a collective takes longer than a step: no call returns before the
// library works no more for any member, which may still write to the memory of the call.
func TestLibraryEnds(t *testing.T) {
	m := simulate(t, 0, 2)
	g, err := Options{Timeout: 2 * time.Second}.Of(m.devs...)
	group(t, g, err)
	noted := make(chan int64, 2)
	err = held(m, 3*time.Second, noted)(deadline(t), g)
	require.ErrorIs(t, err, driver.ErrTimeout)
	assert.Equal(t, []int64{0, 0}, []int64{<-noted, <-noted})
}

// TestLibraryHeld has one whose work does not end, as far as the others know: no call waits for the end of the library
// longer than a step, and a Runner gives the device up and does the rest without it.
func TestLibraryHeld(t *testing.T) {
	const step, long = 300 * time.Millisecond, 5 * time.Second
	for _, runs := range []bool{false, true} {
		t.Run(fmt.Sprint(runs), func(t *testing.T) {
			m, noted := simulate(t, 0, 2), make(chan int64, 2)
			work, o := held(m, long, noted), Options{Timeout: step}
			if runs {
				r, _ := runner(t, Failover{Session: m.devs[0].Session()}, "sim-cuda:0", "sim-cuda:1")
				require.NoError(t, r.RunGroup(deadline(t), "test", o, work))
				assert.Equal(t, []State{Healthy, Lost}, []State{r.Devices()[0].State, r.Devices()[1].State})
			} else {
				g, err := o.Of(m.devs...)
				group(t, g, err)
				require.ErrorIs(t, work(deadline(t), g), driver.ErrTimeout)
			}
			assert.Positive(t, <-noted+<-noted, "they are ended when the copy is")
			assert.Positive(t, m.library.Count("communicators"))
			assert.Eventually(t, func() bool { return m.library.Count("communicators") == 0 }, 6*long, libraryPoll)
		})
	}
}

// TestLibraryHangs has a collective of the library hang with nobody to blame: a Runner tries again with the same
// devices, and gives up none of them.
func TestLibraryHangs(t *testing.T) {
	m := simulate(t, 0, 2)
	r, _ := runner(t, Failover{Session: m.devs[0].Session()}, "sim-cuda:0", "sim-cuda:1")
	require.NoError(t, m.library.Control("collective-hang:1"))
	sizes := []int{}
	require.NoError(t, r.RunGroup(deadline(t), "test", Options{Timeout: time.Second}, func(ctx context.Context,
		g *Group) error {
		sizes = append(sizes, g.Size())
		return g.Do(ctx, func(ctx context.Context, m *Member) error { return queued(ctx, m, 100) })
	}))
	assert.Equal(t, []int{2, 2}, sizes)
	assert.EqualValues(t, 1, r.Stats().Retries)
	for _, d := range r.Devices() {
		assert.Equal(t, Healthy, d.State)
	}
}

// TestLibraryJobLate has work before a collective take longer than a step in one process of a job: all name it, not
// themselves.
func TestLibraryJobLate(t *testing.T) {
	m := simulate(t, 0, 3)
	groups := job(t, Options{Timeout: time.Second}, true, m.devs...)
	b, err := runtime.Alloc[float32](m.devs[2], 100)
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, m.driver.Control("devices:3,slow-copy:2500"))
	require.NoError(t, groups[2].Members()[0].Stream().Fill(b, float32(1)))
	for _, err := range do(groups, func(m *Member) error { return queued(deadline(t), m, 100) }) {
		var named *MemberError
		require.ErrorAs(t, err, &named)
		assert.Equal(t, 2, named.Rank, err)
		assert.ErrorIs(t, err, driver.ErrTimeout)
	}
}

// TestLibraryToldLate has the library tell of another member's failure before that one does: it is to blame.
func TestLibraryToldLate(t *testing.T) {
	g := virtual(t, 2, Options{})
	c := &call{m: g.members[0], ctx: t.Context(), rank: 0, size: 2}
	time.AfterFunc(libraryGrace/4, func() { g.fail(&MemberError{Rank: 1, Err: runtime.ErrLaunch}) })
	var named *MemberError
	require.ErrorAs(t, c.whose(runtime.ErrLaunch, t.Context(), runtime.ErrLaunch), &named)
	assert.Equal(t, 1, named.Rank)
}

// TestRunGroupAlone has the only member of a group not come in time: its device is given up and is not tried again.
func TestRunGroupAlone(t *testing.T) {
	m := simulate(t, 0, 1)
	r, _ := runner(t, Failover{Session: m.devs[0].Session()}, "sim-cuda:0")
	b, err := runtime.Alloc[float32](m.devs[0], 100)
	require.NoError(t, err)
	defer b.Close()
	var ran []string
	require.NoError(t, m.driver.Control("devices:1,slow-copy:5000"))
	require.NoError(t, r.RunGroup(deadline(t), "test", Options{Timeout: 300 * time.Millisecond}, func(ctx context.Context,
		g *Group) error {
		member := g.Members()[0]
		if ran = append(ran, member.Device().String()); len(ran) == 1 {
			if err := member.Stream().Fill(b, float32(1)); err != nil {
				return err
			}
		}
		return member.Barrier(ctx, nil)
	}))
	assert.Equal(t, []string{"sim-cuda:0", "cpu:0"}, ran)
	assert.Equal(t, Lost, r.Devices()[0].State)
	assert.Zero(t, r.Stats().Retries)
}
