//go:build unix

package mpi

// Processes in network namespaces of their own, which reach each other over a virtual cable alone.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// spaces are the names of the namespaces, which another run of the tests on the same machine does not have.
var spaces = [2]string{fmt.Sprint("concord-a", os.Getpid()), fmt.Sprint("concord-b", os.Getpid())}

// inNamespaces are the arguments of launchers for processes on two machines, by the name of the launcher. agent is a
// command in the place of ssh.
func inNamespaces(l launcher, agent string) []string {
	if l.version == known[0].version {
		return append(slices.Clone(l.args), "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self",
			"--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24",
			"-host", spaces[0]+":1,"+spaces[1]+":1", "-x", "MPI_TEST_ROLE", "-x", "MPI_TEST_OUT",
			"-x", "MPI_TEST_TRAININGS", "-x", "CONCORD_CPU_THREADS")
	}
	return []string{"-launcher", "ssh", "-launcher-exec", agent, "-hosts", strings.Join(spaces[:], ","), "-iface", "cable",
		"-genv", "UCX_TLS", "tcp,self"}
}

// namespaces makes two network namespaces with a cable between them. Each stands for a machine.
func namespaces(t *testing.T) (agent string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces are made by root")
	}
	sh := func(command string, args ...any) {
		out, err := exec.Command("sh", "-c", fmt.Sprintf(command, args...)).CombinedOutput()
		if err != nil {
			t.Skipf("no network namespaces here: %s: %v: %s", fmt.Sprintf(command, args...), err, out)
		}
	}
	t.Cleanup(func() {
		for _, ns := range spaces {
			_ = exec.Command("ip", "netns", "del", ns).Run()
			_ = os.RemoveAll("/etc/netns/" + ns)
		}
	})
	for i, ns := range spaces {
		sh("ip netns add %s && ip -n %s link set lo up && mkdir -p /etc/netns/%s", ns, ns, ns)
		sh("printf '127.0.0.1 localhost\n10.77.0.1 %s\n10.77.0.2 %s\n' >/etc/netns/%s/hosts", spaces[0], spaces[1], ns)
		if i == 1 {
			sh("ip -n %s link add cable type veth peer name cable netns %s", spaces[0], spaces[1])
		}
	}
	for i, ns := range spaces {
		sh("ip -n %s addr add 10.77.0.%d/24 dev cable && ip -n %s link set cable up", ns, i+1, ns)
	}
	for _, ns := range spaces { // a cable needs a moment
		require.Eventually(t, func() bool {
			out, err := exec.Command("ip", "-n", ns, "-br", "link", "show", "cable").Output()
			return err == nil && bytes.Contains(out, []byte(" UP "))
		}, 10*time.Second, 50*time.Millisecond)
	}
	agent = filepath.Join(t.TempDir(), "agent")
	require.NoError(t, os.WriteFile(agent, []byte(`#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; cd /; $*"
`), 0o755))
	return agent
}

// net starts processes in namespaces.
type net struct {
	l          launcher
	agent, dir string
}

func newNet(t *testing.T, l launcher) *net {
	t.Helper()
	return &net{l, namespaces(t), t.TempDir()}
}

// start starts two processes in a role.
func (n *net) start(t *testing.T, role string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	args := append(inNamespaces(n.l, n.agent), "-np", "2", self)
	cmd := exec.Command(n.agent, spaces[0], n.l.command+" "+strings.Join(args, " "))
	cmd.Env = append(os.Environ(), "MPI_TEST_ROLE="+role, "MPI_TEST_OUT="+n.dir, "CONCORD_CPU_THREADS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = nil
	cmd.WaitDelay = 5 * time.Second
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	return cmd, &out
}

// run has two processes play a role to its end.
func (n *net) run(t *testing.T, role string) {
	t.Helper()
	cmd, out := n.start(t, role)
	require.NoError(t, ended(cmd, 2*time.Minute), "%s", out)
	require.Equal(t, 2, strings.Count(out.String(), "done: "+role), "%s", out)
}

// cut pulls the cable when both processes of a role have begun, and waits for what they say of it.
func (n *net) cut(t *testing.T, role string) {
	t.Helper()
	cmd, out := n.start(t, role)
	defer func() { // what they have printed is complete when they have ended
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = ended(cmd, 10*time.Second)
		t.Log(out)
	}()
	began := func(rank int) bool {
		_, err := os.Stat(filepath.Join(n.dir, fmt.Sprint("began", rank)))
		return err == nil
	}
	require.Eventually(t, func() bool { return began(0) && began(1) }, time.Minute, 50*time.Millisecond,
		"no exchange before the cable is pulled")
	require.NoError(t, exec.Command("ip", "-n", spaces[0], "link", "set", "cable", "down").Run())
	for rank := range 2 {
		path := filepath.Join(n.dir, fmt.Sprint("result", rank))
		assert.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, 20*time.Second, 50*time.Millisecond)
		text, _ := os.ReadFile(path)
		assert.Contains(t, string(text), "in time")
		t.Logf("rank %d: %s", rank, text)
	}
}

// TestNamespaces has processes that reach each other over TCP alone, and then pulls the cable: both say in time that
// the other one cannot be reached.
func TestNamespaces(t *testing.T) {
	onlyFull(t)
	eachLauncher(t, func(t *testing.T, l launcher) {
		n := newNet(t, l)
		n.run(t, "exchange")
		n.run(t, "all")
		n.cut(t, "cut")
	})
}

// ended waits for a process, for some time.
func ended(cmd *exec.Cmd, limit time.Duration) error {
	timer := time.AfterFunc(limit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	return cmd.Wait()
}

// cut exchanges until the network is gone. Its result goes to a file, since the launcher may be cut off, too.
func cut(ctx context.Context) error {
	const timeout = 5 * time.Second
	j, err := Options{Timeout: timeout}.Init(ctx)
	if err != nil {
		return err
	}
	other := 1 - j.Rank()
	out, in := make([]byte, 1<<20), make([]byte, 1<<20)
	for step := 0; ; step++ {
		if step == 10 {
			if err := began(j.Rank()); err != nil {
				return err
			}
		}
		last := time.Now()
		if err := j.Exchange(ctx, other, out, other, in); err != nil {
			return told(j.Rank(), judged(err, other, time.Since(last), timeout))
		}
	}
}

// began tells the test that a process has begun.
func began(rank int) error {
	return os.WriteFile(filepath.Join(os.Getenv("MPI_TEST_OUT"), fmt.Sprint("began", rank)), nil, 0o644)
}

// judged says whether an error names the other process, in time.
func judged(err error, other int, took, limit time.Duration) string {
	result := "too late"
	e, ok := errors.AsType[*cluster.MemberError](err)
	switch {
	case !ok || e.Rank != other || !errors.Is(err, runtime.ErrDeviceLost):
		result = "another error"
	case took <= limit:
		result = "in time"
	}
	return fmt.Sprintf("%s, after %v: %v", result, took, err)
}

// told gives the test a result.
func told(rank int, result string) error {
	dir := os.Getenv("MPI_TEST_OUT")
	temporary := filepath.Join(dir, fmt.Sprint("part", rank))
	if err := os.WriteFile(temporary, []byte(result), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, fmt.Sprint("result", rank)))
}
