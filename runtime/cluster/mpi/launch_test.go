//go:build unix

package mpi

// The tests start this test program under a launcher. Each of its processes then plays a role instead of running tests.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// full is set by make test-mpi: more processes, and long arrays. MPI_FULL=2 makes all trainings, too.
var (
	everything = os.Getenv("MPI_FULL") == "2"
	full       = everything || os.Getenv("MPI_FULL") == "1"
)

// launcher is an mpirun of this machine.
type launcher struct {
	name    string
	command string
	args    []string
	goOn    []string // arguments with which the others go on when one process has ended,
	around  []string // and a command around the program that is needed for it
	overTCP []string // arguments with which messages go over TCP
	version string   // how the version of the library begins
}

var known = []launcher{
	{name: "openmpi", args: []string{"--allow-run-as-root", "--oversubscribe"}, version: "Open MPI v",
		goOn: []string{"--enable-recovery"}, overTCP: []string{"--mca", "btl", "tcp,self"}},
	// Its launcher ends all processes when it sees that a signal has ended one, and sends SIGUSR1 before.
	{name: "mpich", version: "MPICH Version: ", goOn: []string{"-disable-auto-cleanup"},
		around:  []string{"sh", "-c", `trap "" USR1; "$0"; exit $?`},
		overTCP: []string{"-genv", "UCX_TLS", "tcp,self"}},
}

// says is what the launchers' versions contain.
var says = map[string]string{"openmpi": "Open", "mpich": "HYDRA"}

// eachLauncher runs a test with each launcher of this machine, and skips without one.
func eachLauncher(t *testing.T, test func(t *testing.T, l launcher)) {
	if !callable {
		missing(t, "this build has no MPI")
	}
	for _, l := range known {
		t.Run(l.name, func(t *testing.T) {
			for _, command := range []string{"mpirun." + l.name, "mpirun"} {
				out, err := exec.CommandContext(t.Context(), command, "--version").Output()
				if err == nil && bytes.Contains(out, []byte(says[l.name])) {
					l.command = command
					test(t, l)
					return
				}
			}
			missing(t, fmt.Sprintf("no mpirun of %s here (Debian: openmpi-bin, mpich)", l.name))
		})
	}
}

// missing skips a test. In make test-mpi, where nothing may be missing, the test fails.
func missing(t *testing.T, what string) {
	t.Helper()
	if full {
		t.Fatal(what)
	}
	t.Skip(what)
}

// try starts n processes in a role and returns what they print, and how the launcher ended. They may take a while.
func (l launcher) try(t *testing.T, n int, role string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	self, err := os.Executable()
	require.NoError(t, err)
	all := append(append(append([]string(nil), l.args...), args...), "-np", fmt.Sprint(n))
	if slices.Equal(args, l.goOn) {
		all = append(all, l.around...)
	}
	all = append(all, self)
	cmd := exec.CommandContext(ctx, l.command, all...)
	cmd.Env = append(os.Environ(), "MPI_TEST_ROLE="+role, "CONCORD_CPU_THREADS=1") // of many processes on one machine
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(out), err
}

// run is try for a role that all processes play to its end, or all but one where one is killed.
func (l launcher) run(t *testing.T, n int, role string, args ...string) string {
	t.Helper()
	out, err := l.try(t, n, role, args...)
	// A job that has failed leaves the library as it is, and MPICH's launcher may report that as a failure.
	if !slices.Equal(args, l.goOn) {
		require.NoError(t, err, "%d processes, %s:\n%s", n, role, out)
	}
	if strings.HasSuffix(role, "killed") {
		n--
	}
	require.Equal(t, n, strings.Count(out, "done: "+role), "%d processes, %s, %v:\n%s", n, role, err, out)
	return out
}

func TestMain(m *testing.M) {
	name := os.Getenv("MPI_TEST_ROLE")
	if name == "" {
		os.Exit(m.Run())
	}
	play, ok := roles[name]
	err := errors.New("no such role")
	if ok {
		err = play(context.Background())
	}
	if err != nil {
		fmt.Printf("FAILED: %s: %v\n", name, err)
		os.Exit(1)
	}
	fmt.Printf("done: %s\n", name)
	os.Exit(0)
}
