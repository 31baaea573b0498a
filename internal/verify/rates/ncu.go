package rates

// What NVIDIA's profiler of kernels says limits one, where it is installed and may read the counters.

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// The metrics that the profiler is asked for.
const (
	metricTime      = "gpu__time_duration.sum"
	metricCompute   = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
	metricMemory    = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed" // the busiest of caches and DRAM
	metricDRAM      = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
	metricWarps     = "sm__warps_active.avg.pct_of_peak_sustained_active"
	metricRegisters = "launch__registers_per_thread"
)

// Limits of a run under the profiler, which runs each kernel several times.
const (
	profilerTime     = 90 * time.Second
	profilerLaunches = 12
)

// Bound runs a command, its program first, under NVIDIA's profiler ncu and returns what limits the kernel that took the
// most time, such as "gemm: memory 78 %, DRAM 70 %, compute 12 %, warps 45 %, 96 registers". The command should do the
// work of Once and end. Bound waits for it, 90 seconds at most; then, or when ctx ends, the profiler is killed. The
// command stays in the caller's group of processes, so that what kills this group ends it, too. An error is one
// line. It matches runtime.ErrUnsupported where there is no profiler, or where it may not read the device's
// counters.
func Bound(ctx context.Context, command []string) (string, error) {
	profiler, err := Tool("ncu", profilerPaths...)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, profilerTime, fmt.Errorf("ncu took more than %v", profilerTime))
	defer cancel()
	metrics := []string{metricTime, metricCompute, metricMemory, metricDRAM, metricWarps, metricRegisters}
	args := []string{"--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
		"--target-processes", "all", "--launch-count", strconv.Itoa(profilerLaunches),
		"--metrics", strings.Join(metrics, ",")}
	cmd := exec.CommandContext(ctx, profiler, append(args, command...)...)
	var out bytes.Buffer
	var last tail
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &last, 2*time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	text, parseErr := parseProfile(out.Bytes())
	if parseErr == nil { // whatever the command returned
		return text, nil
	}
	return "", oneLine{fmt.Errorf("ncu: %w", errors.Join(parseErr, err, last.error()))}
}

var profilerPaths = []string{"/usr/local/cuda*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"}

// Tool returns the path of a vendor's program: that on the PATH, or else the last match of the first of some patterns
// that has one, which is the newest. Without one it is runtime.ErrUnsupported.
func Tool(name string, patterns ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil || !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the patterns are right
		for _, path := range slices.Backward(found) {
			if path, err := exec.LookPath(path); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed: %w", name, runtime.ErrUnsupported)
}

// parseProfile reads what ncu writes, which begins each of its messages with == and mixes them with the output of the
// program. A table has the metrics as columns, with their units in a row below the names (the raw page), or has a row
// for each metric.
func parseProfile(out []byte) (string, error) {
	var table bytes.Buffer
	var complaint error
	for line := range bytes.Lines(out) {
		message := strings.TrimSpace(string(line))
		switch {
		case strings.HasPrefix(message, `"ID"`), table.Len() > 0 && strings.HasPrefix(message, `"`):
			table.WriteString(message + "\n")
		case strings.HasPrefix(message, "==ERROR=="), strings.HasPrefix(message, "==WARNING=="):
			_, text, _ := strings.Cut(message, "== ")
			if strings.Contains(message, "ERR_NVGPUCTRPERM") {
				complaint = errors.Join(complaint, fmt.Errorf("%s: %w", text, runtime.ErrUnsupported))
			} else {
				complaint = errors.Join(complaint, errors.New(text))
			}
		}
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) < 2 {
		return "", errors.Join(complaint, err, errors.New("no kernel was profiled"))
	}
	k := slowest(launchesOf(rows))
	if k == nil {
		return "", errors.Join(complaint, errors.New("the table has none of the metrics"))
	}
	return k.String(), nil
}

// launch is one launch of a kernel in a table.
type launch struct {
	name    string
	metrics map[string]float64
	total   float64 // nanoseconds of all launches of the kernel, once they are summed up
}

// launchesOf reads the rows of either form of table.
func launchesOf(rows [][]string) map[string]*launch {
	head, found := rows[0], map[string]*launch{}
	column := func(row []string, name string) string {
		if i := slices.Index(head, name); i >= 0 {
			return row[i]
		}
		return ""
	}
	for _, row := range rows[1:] {
		id := column(row, "ID")
		if id == "" { // the units
			continue
		}
		l := found[id]
		if l == nil {
			l = &launch{name: column(row, "Kernel Name"), metrics: map[string]float64{}}
			found[id] = l
		}
		note := func(name, text string) {
			if x, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64); err == nil {
				l.metrics[name] = x
			}
		}
		note(column(row, "Metric Name"), column(row, "Metric Value"))
		for i, name := range head {
			if strings.Contains(name, "__") {
				note(name, row[i])
			}
		}
	}
	return found
}

// slowest returns the longest launch of the kernel whose launches took the most time together, or nil if there are no
// metrics.
func slowest(found map[string]*launch) (slow *launch) {
	longest := map[string]*launch{}
	for _, l := range found {
		if len(l.metrics) == 0 {
			continue
		}
		l.total = l.metrics[metricTime]
		if k := longest[l.name]; k != nil {
			if l.metrics[metricTime] <= k.metrics[metricTime] {
				l, k = k, l
			}
			l.total += k.total
		}
		longest[l.name] = l
	}
	for _, name := range slices.Sorted(maps.Keys(longest)) {
		if l := longest[name]; slow == nil || l.total > slow.total {
			slow = l
		}
	}
	return slow
}

// String writes the metrics that there are.
func (l *launch) String() string {
	var parts []string
	for _, m := range []struct{ metric, format string }{
		{metricMemory, "memory %.0f %%"}, {metricDRAM, "DRAM %.0f %%"}, {metricCompute, "compute %.0f %%"},
		{metricWarps, "warps %.0f %%"}, {metricRegisters, "%.0f registers"},
	} {
		if x, ok := l.metrics[m.metric]; ok {
			parts = append(parts, fmt.Sprintf(m.format, x))
		}
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(l.name, source.EntryPrefix), "(")
	return name + ": " + strings.Join(parts, ", ")
}
