package cuda

// The assembler's report on kernels: registers, spills, shared memory.

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// verbose makes NVRTC put its assembler's report on every kernel into the log.
const verbose = "--ptxas-options=--verbose"

// report compiles a unit once more to get the assembler's report. If NVRTC cannot pass it on,
// report uses the assembler that comes with the driver.
func report(c *cgo.Compilation) ([]driver.KernelInfo, error) {
	_, log, err := c.Compile(append(merge(nil, c.Options), verbose))
	if infos := parseReport(log); err == nil && len(infos) > 0 {
		return infos, nil
	}
	n, ok := capability(c.Target)
	if !ok {
		return nil, nil
	}
	arch := strconv.Itoa(n)
	ptx, _, err := c.Compile(merge(c.Options, []string{"--gpu-architecture=compute_" + arch}))
	if err != nil {
		return nil, err
	}
	_, log, err = c.Assemble(ptx, []string{"--gpu-name=sm_" + arch, "--verbose"})
	if errors.Is(err, driver.ErrUnsupported) {
		return nil, nil // no assembler is available
	}
	return parseReport(log), err
}

// The lines of the assembler's report, from version 10 on.
var (
	reportEntry = regexp.MustCompile(`Compiling entry function '([^']*)'`)
	reportOf    = regexp.MustCompile(`Function properties for (\S+)`)
	reportFrame = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	reportUsed  = regexp.MustCompile(`Used (\d+) registers`)
	reportSmem  = regexp.MustCompile(`(\d+) bytes smem`)
)

// parseReport reads the report of ptxas --verbose. SpillBytes counts the bytes that the assembler
// stored because there were not enough registers, without arrays that are in memory anyway.
func parseReport(log string) (infos []driver.KernelInfo) {
	var k *driver.KernelInfo // the entry that the following lines describe
	about := ""              // the function that the frame is of, which may be one that the entry calls
	for line := range strings.Lines(log) {
		if m := reportEntry.FindStringSubmatch(line); m != nil {
			infos = append(infos, driver.KernelInfo{Name: strings.TrimPrefix(m[1], source.EntryPrefix), Implementation: "cuda"})
			k, about = &infos[len(infos)-1], m[1]
			continue
		}
		if k == nil {
			continue
		}
		if m := reportOf.FindStringSubmatch(line); m != nil {
			about = m[1]
		}
		if m := reportFrame.FindStringSubmatch(line); m != nil && strings.TrimPrefix(about, source.EntryPrefix) == k.Name {
			k.SpillBytes = number(m[2])
		}
		if m := reportUsed.FindStringSubmatch(line); m != nil {
			k.Registers = int(number(m[1]))
			if m := reportSmem.FindStringSubmatch(line); m != nil {
				k.LocalBytes = number(m[1])
			}
		}
	}
	return infos
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // the pattern allows nothing else
	return n
}
