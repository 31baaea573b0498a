package verify

// The step that runs kernels under NVIDIA's compute-sanitizer.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/concord-compute/concord/internal/verify/rates"
	"github.com/concord-compute/concord/runtime"
)

// sanitizers are the tools of compute-sanitizer that run, the one that finds more first.
var sanitizers = []string{"memcheck", "racecheck"}

// stepSanitizer runs the step catalog under each tool. It takes many times as long as without, so that
// what fits in the time is a part; cases come in the order of the catalog.
func stepSanitizer(ctx context.Context, e *Env, dev *runtime.Device) error {
	backend := strings.TrimPrefix(dev.Info().Backend, "sim-")
	if err := dev.Close(); err != nil {
		return err
	}
	if backend != "cuda" {
		return skipf("compute-sanitizer checks CUDA devices only")
	}
	program, err := rates.Tool("compute-sanitizer", "/usr/local/cuda*/bin/compute-sanitizer")
	if err != nil {
		return skipf("compute-sanitizer is not on this machine")
	}
	e.fact("compute-sanitizer", "%s", program)
	for i, name := range sanitizers {
		share := time.Minute
		if deadline, ok := ctx.Deadline(); ok {
			share = time.Until(deadline) / time.Duration(len(sanitizers)-i)
		}
		e.check(ctx, name, func(ctx context.Context) error { return e.sanitize(ctx, program, name, share) })
	}
	return nil
}

// summary is the last line of a tool.
var summary = regexp.MustCompile(`(?m)^=+ (?:ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards? displayed.*)$`)

// sanitize runs one tool for a time. The process under it reports its own checks, of which only the number counts
// here: other steps judge their results.
func (e *Env) sanitize(ctx context.Context, program, name string, share time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, share)
	defer stop()
	args := append([]string{"--tool", name, "--error-exitcode", "9", "--print-limit", "20", "--report-api-errors", "no"},
		e.tools.Self...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	var words bytes.Buffer
	cmd.Stderr = &words
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return skipf("%s does not start: %v", program, err)
	}
	// The process stops in time for the tool to sum up.
	line := job{Step: "catalog", Device: e.Device, Seconds: max((share - 4*time.Second).Seconds(), 1), Quick: true}
	_ = json.NewEncoder(in).Encode(line) // a tool that has ended at once says why
	cases, told := underTool(out)
	err = cmd.Wait()
	text := words.String() + told
	e.fact(name, "%d cases ran under it in %.0f s", cases, share.Seconds())
	found := summary.FindStringSubmatch(text)
	switch {
	case found == nil && ctx.Err() != nil:
		return skipf("it had not summed up after %.0f s and %d cases", share.Seconds(), cases)
	case found == nil:
		return skipf("it does not work here (%v): %s", err, lastLines(text, 6))
	case found[1]+found[2] != "0":
		return fmt.Errorf("%s found %s in %d cases:\n%s", name, found[0], cases, text)
	case cases == 0:
		return skipf("no case ran under it in %.0f s (%v): %s", share.Seconds(), err, lastLines(text, 6))
	}
	return nil
}

// underTool counts the checks that passed, and returns the lines that are no records: the tool's.
func underTool(out io.Reader) (cases int, words string) {
	var rest strings.Builder
	s := bufio.NewScanner(out)
	s.Buffer(nil, longestLine)
	for s.Scan() {
		var r record
		switch err := json.Unmarshal(s.Bytes(), &r); {
		case err != nil:
			rest.Write(s.Bytes())
			rest.WriteByte('\n')
		case r.Check != nil && r.Check.Verdict == Pass:
			cases++
		}
	}
	_, _ = io.Copy(io.Discard, out) // behind a line that is too long
	return cases, rest.String()
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
