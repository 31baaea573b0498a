package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

// The log of NVRTC 11.8; the second kernel calls a function.
const recorded = `program.cl(3): warning #177-D: variable "x" was declared but never referenced

ptxas info    : 60 bytes gmem
ptxas info    : Compiling entry function 'cc_kernel_scale' for 'sm_70'
ptxas info    : Function properties for cc_kernel_scale
ptxas         .     800 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 54 registers, 364 bytes cmem[0]
ptxas info    : Compiling entry function 'cc_kernel_sum' for 'sm_70'
ptxas info    : Function properties for cc_kernel_sum
ptxas         .     16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Function properties for helper
ptxas         .     8 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads
ptxas info    : Used 9 registers, 1256 bytes smem, 364 bytes cmem[0], 4 bytes cmem[2]
`

var recordedInfos = []driver.KernelInfo{
	{Name: "scale", Implementation: "cuda", Registers: 54},
	{Name: "sum", Implementation: "cuda", Registers: 9, SpillBytes: 12, LocalBytes: 1256},
}

// The form of CUDA 13, which follows the registers by barriers and a stack's size, and each kernel by a time. Here the
// function that is called comes after the line with the registers.
const newer = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'cc_kernel_scale' for 'sm_90'
ptxas info    : Function properties for cc_kernel_scale
    800 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 54 registers, used 0 barriers, 800 bytes cumulative stack size
ptxas info    : Compile time = 12.345 ms
ptxas info    : Compiling entry function 'cc_kernel_sum' for 'sm_90'
ptxas info    : Function properties for cc_kernel_sum
    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 9 registers, used 1 barriers, 24 bytes cumulative stack size, 1256 bytes smem
ptxas info    : Compile time = 3.210 ms
ptxas info    : Function properties for helper
    8 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads
`

func TestParseReport(t *testing.T) {
	assert.Equal(t, recordedInfos, parseReport(recorded))
	assert.Equal(t, recordedInfos, parseReport(newer))
	assert.Empty(t, parseReport(""))
	assert.Empty(t, parseReport("ptxas info    : Used 9 registers\n"), "no kernel was named")
	assert.Equal(t, []driver.KernelInfo{{Name: "k", Implementation: "cuda"}},
		parseReport("ptxas info    : Compiling entry function 'k' for 'sm_70'\nptxas info    : Used many registers"))
}

func TestReport(t *testing.T) {
	options := flags("sm_70")
	var asked [][]string
	c := &cgo.Compilation{Target: "sm_70", Options: options, Compile: func(options []string) ([]byte, string, error) {
		asked = append(asked, options)
		return nil, recorded, nil
	}}
	infos, err := report(c)
	require.NoError(t, err)
	assert.Equal(t, recordedInfos, infos)
	assert.Equal(t, [][]string{append(flags("sm_70"), verbose)}, asked)

	// NVRTC does not pass on the assembler's report: the driver's assembler compiles the PTX.
	ptx := []byte("PTX")
	c.Compile = func(options []string) ([]byte, string, error) {
		if slices.Contains(options, verbose) {
			return nil, "", errors.New("unknown option")
		}
		assert.Equal(t, "--gpu-architecture=compute_70", options[0])
		return ptx, "", nil
	}
	c.Assemble = func(text []byte, options []string) ([]byte, string, error) {
		assert.Equal(t, ptx, text)
		assert.Equal(t, []string{"--gpu-name=sm_70", "--verbose"}, options)
		return nil, recorded, nil
	}
	infos, err = report(c)
	require.NoError(t, err)
	assert.Equal(t, recordedInfos, infos)

	c.Assemble = func([]byte, []string) ([]byte, string, error) {
		return nil, "", fmt.Errorf("no assembler: %w", driver.ErrUnsupported)
	}
	infos, err = report(c)
	require.NoError(t, err)
	assert.Empty(t, infos, "there is no assembler")
	assert.Equal(t, flags("sm_70"), options)
}
