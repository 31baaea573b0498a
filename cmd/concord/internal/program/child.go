package program

// concord run in a child process.

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
)

// onCPU reports whether a name is that of a device of the cpu backend, which survives a kernel's
// faults and has no substitute. The meaning of "auto" and of numbers would have to be asked of the
// drivers, so they count as other devices.
func onCPU(device string) bool {
	backend, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(device)), ":")
	return backend == "cpu"
}

// runInChild repeats the command in a child process and prints its output. There is a deadline if
// --timeout sets one.
func runInChild(ctx context.Context, a *app.App, j *job) error {
	op := fmt.Sprintf("run %s over %v", cmp.Or(j.flags.kernel, j.file), j.grid)
	return a.RunInChild(ctx, j.flags.timeout, j.flags.device, op, j.flags.commandLine(j.file, a.JSON)...)
}

// commandLine returns the flags as command line arguments.
func (f *runFlags) commandLine(file string, json bool) []string {
	args := []string{"run", "--device=" + f.device, "--kernel=" + f.kernel, "--global=" + f.global, "--local=" + f.local}
	for flag, values := range map[string][]string{"--arg=": f.args, "--out=": f.outs, "--define=": f.program.defines,
		"--include=": f.program.includes} {
		for _, v := range values {
			args = append(args, flag+v)
		}
	}
	if f.timeout > 0 {
		args = append(args, "--timeout="+f.timeout.String())
	}
	if json {
		args = append(args, "--json")
	}
	return append(args, "--", file)
}
