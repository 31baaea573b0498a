//go:build unix

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// counts are the numbers of processes that tests start.
func counts() []int {
	if full {
		return []int{1, 2, 3, 4, 8}
	}
	return []int{1, 3}
}

func onlyFull(t *testing.T) {
	t.Helper()
	if !full {
		t.Skip("make test-mpi runs it")
	}
}

// TestHello finds processes that do not find each other, and in exchanges bytes that go to a wrong place or process,
// pieces that are lost or swapped, and processes that wait for each other.
func TestHello(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) {
		for _, n := range counts() {
			out := l.run(t, n, "hello")
			for r := range n {
				assert.Regexp(t, fmt.Sprintf(`rank %d of %d on \S+ with %s\d`, r, n, l.version), out)
			}
		}
		l.run(t, 3, "group")
	})
}

// TestAlone has processes that no launcher has started.
func TestAlone(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) {
		self, err := os.Executable()
		require.NoError(t, err)
		for m, libraries := range usual {
			if strings.HasPrefix(l.version, "Open") != (m == openMPI) {
				continue
			}
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "MPI_TEST_ROLE=hello", "CONCORD_MPI_LIBRARY="+libraries[0])
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "rank 0 of 1 on")
			assert.Contains(t, string(out), "with "+l.version)
		}
	})
}

// TestExchange finds over TCP what TestHello finds in the library's usual way.
func TestExchange(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) { l.run(t, 2, "exchange", l.overTCP...) })
}

// TestPanic finds libraries that take the signals by which Go notices a nil pointer.
func TestPanic(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) { l.run(t, 2, "panic") })
}

// TestAbort finds processes that go on after one has aborted the job.
func TestAbort(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) {
		begin := time.Now()
		out, err := l.try(t, 3, "abort")
		require.Error(t, err, out)
		assert.Zero(t, strings.Count(out, "done: abort"), out)
		assert.Less(t, time.Since(begin), 30*time.Second, out)
	})
}

// TestElsewhere finds an MPI that is used though another part of the program has started it, or ended it.
func TestElsewhere(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) { l.run(t, 2, "elsewhere") })
}

// TestKept finds memory that is given back while a message is being sent from it.
func TestKept(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) { l.run(t, 2, "kept", l.goOn...) })
}

// TestHanging finds an Abort that waits for an end of the library that never comes.
func TestHanging(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) { l.run(t, 2, "hanging", l.goOn...) })
}

// TestUnequal finds a process that joins a job with a timeout of its own.
func TestUnequal(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) { l.run(t, 2, "unequal", l.goOn...) })
}

// TestLengths has processes that disagree on the length of a message: the one that receives says so.
func TestLengths(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) {
		for _, length := range []string{"9", "0", "11"} {
			t.Setenv("MPI_TEST_LENGTH", length)
			l.run(t, 2, "length", l.goOn...)
		}
	})
}

// TestCollectives finds results that are not those of a group in one process, to the bit.
func TestCollectives(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) {
		for _, n := range counts() {
			l.run(t, n, "all")
		}
	})
}

// TestLong finds results of long arrays that are not within the bounds, or not the same at all members.
func TestLong(t *testing.T) {
	onlyFull(t)
	eachLauncher(t, func(t *testing.T, l launcher) {
		for _, n := range []int{2, 3} {
			l.run(t, n, "long")
		}
	})
}

// TestRate finds a ring of less than 0.6 of the rate of the library's own all-reduce.
func TestRate(t *testing.T) {
	onlyFull(t)
	eachLauncher(t, func(t *testing.T, l launcher) {
		out := l.run(t, 2, "rate")
		t.Log(out)
		ratio := regexp.MustCompile(`ratio ([\d.]+)`).FindStringSubmatch(out)
		require.Len(t, ratio, 2, out)
		got, err := strconv.ParseFloat(ratio[1], 64)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, got, 0.6)
	})
}

// TestFate finds processes that do not learn in time what has happened to another one, or learn of a wrong one.
func TestFate(t *testing.T) {
	roles := []string{"stalled", "left", "killed"}
	if full {
		roles = append(roles, "stopped", "cancelled", "broken")
	}
	eachLauncher(t, func(t *testing.T, l launcher) {
		for _, role := range roles {
			t.Run(role, func(t *testing.T) {
				t.Parallel()
				numbers := []int{4}
				if full && role == "killed" {
					numbers = []int{2, 4, 8}
				}
				for _, n := range numbers {
					t.Log(l.run(t, n, role, l.goOn...))
				}
			})
		}
	})
}

// TestOtherLibrary starts processes with a library that is not the launcher's: each would be a job of one.
func TestOtherLibrary(t *testing.T) {
	eachLauncher(t, func(t *testing.T, l launcher) {
		for m, libraries := range usual {
			if strings.HasPrefix(l.version, "Open") == (m == openMPI) {
				continue
			}
			t.Setenv("CONCORD_MPI_LIBRARY", libraries[0])
			if _, err := openLibrary(libraries[0]); err != nil {
				missing(t, fmt.Sprint("the other library is missing: ", err))
			}
			out, err := l.try(t, 2, "hello")
			require.Error(t, err, out)
			assert.Equal(t, 2, strings.Count(out, "CONCORD_MPI_LIBRARY"), out)
		}
	})
}

// TestSession finds a library of the environment where a session names another one.
func TestSession(t *testing.T) {
	if !callable {
		t.Skip("this build has no MPI")
	}
	const library = "/no/such/libmpi.so"
	s, err := runtime.New(runtime.Config{MPILibrary: library})
	require.NoError(t, err)
	defer s.Close()
	dev, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	_, err = Group(t.Context(), dev)
	require.ErrorIs(t, err, runtime.ErrUnsupported)
	assert.ErrorContains(t, err, library)
}

// TestLaunched finds processes that compute alone, though a launcher has started several.
func TestLaunched(t *testing.T) {
	for _, c := range []struct {
		size int
		env  map[string]string
		ok   bool
	}{
		{1, nil, true},
		{1, map[string]string{"PMI_SIZE": "1"}, true},
		{1, map[string]string{"PMI_SIZE": "2"}, false},
		{2, map[string]string{"PMI_SIZE": "2"}, true},
		{1, map[string]string{"OMPI_COMM_WORLD_SIZE": "2"}, false},
		{1, map[string]string{"SLURM_STEP_NUM_TASKS": "2"}, true}, // by hand, within a job of Slurm's
		{1, map[string]string{"SLURM_STEP_NUM_TASKS": "2", "PMIX_RANK": "0"}, false},
		{1, map[string]string{"SLURM_STEP_NUM_TASKS": "2", "PMI_RANK": "1"}, false},
	} {
		j := &Job{size: c.size}
		err := j.launched(func(name string) string { return c.env[name] })
		assert.Equal(t, c.ok, err == nil, "%v: %v", c, err)
		if !c.ok {
			assert.ErrorIs(t, err, runtime.ErrUnsupported)
		}
	}
}

// TestGone finds a process that counts as gone while the last piece that it has sent is on a slow connection, and one
// that is waited for although nothing of it can come.
func TestGone(t *testing.T) {
	j := &Job{size: 2, hosts: []string{"a", "b"}, timeout: time.Second, quiet: true}
	w := &j.watch
	w.gone, w.passed = make([]atomic.Bool, 2), make([]tally, 2)
	x := exchange{j: j, ctx: t.Context()}
	x.lanes[1] = lane{f: irecv, peer: 1, posted: true}
	w.passed[1].received = 4
	w.take(j, message{subject: leaves, from: 1, count: 5})
	assert.Nil(t, x.stuck(j.timeout/2))
	e := x.stuck(2 * j.timeout)
	require.NotNil(t, e)
	assert.Equal(t, 1, e.err.Rank)
	require.ErrorIs(t, e.err, runtime.ErrClosed)
	w.passed[1].received = 5
	assert.NotNil(t, x.stuck(j.timeout/2))
}

// TestTell finds processes that count as told of something for which there was no place.
func TestTell(t *testing.T) {
	j := &Job{size: 2}
	j.watch.passed = make([]tally, 2)
	told := make([]bool, 2)
	assert.False(t, j.watch.tell(j, message{subject: leaves}, told))
	assert.Equal(t, []bool{false, false}, told)
}

// TestOwn finds mistakes and a lack of memory of this process for which another one is blamed.
func TestOwn(t *testing.T) {
	j := &Job{size: 2, hosts: []string{"a", "b"}}
	x := exchange{j: j}
	x.lanes[0].peer = 1
	for is, rank := range map[error]int{runtime.ErrOutOfMemory: 0, runtime.ErrInvalidArgument: 0, runtime.ErrDimension: 1,
		nil: 1} {
		e := x.failed(0, &failure{is: is}).err
		assert.Equal(t, rank, e.Rank, is)
		assert.Equal(t, is == nil, errors.Is(e, runtime.ErrDeviceLost), is)
	}
}

func TestCandidates(t *testing.T) {
	env := map[string]string{}
	first := func() string { return candidates("", func(name string) string { return env[name] })[0] }
	assert.Equal(t, "libmpi.so.40", first())
	env["PMI_RANK"] = "0"
	assert.Equal(t, "libmpich.so.12", first())
	env["OMPI_COMM_WORLD_SIZE"] = "2"
	assert.Equal(t, "libmpi.so.40", first())
	assert.Equal(t, []string{"/x/libmpi.so"}, candidates("/x/libmpi.so", nil))
	assert.Equal(t, "Open MPI v4.1.4", shortVersion("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"))
	assert.Equal(t, "MPICH Version: 4.0.2", shortVersion("MPICH Version:\t4.0.2\nMPICH Release date:\tThu"))
}

func TestNoLibrary(t *testing.T) {
	for _, name := range []string{"/no/such/libmpi.so", "libc.so.6"} { // a library, but not of MPI
		_, err := Options{Library: name}.Init(t.Context())
		require.ErrorIs(t, err, runtime.ErrUnsupported)
		if callable {
			assert.ErrorContains(t, err, name)
		}
	}
	for _, timeout := range []time.Duration{-1, 10, leastTimeout - 1} { // a ticker cannot have less than 1 ns
		_, err := Options{Timeout: timeout}.Init(t.Context())
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Init(done)
	require.ErrorIs(t, err, context.Canceled)
}
