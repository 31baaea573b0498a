package metal

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// open opens the simulated device with unified memory, or skips the test if this build has none.
func open(t *testing.T) driver.Device { return openAt(t, 0) }

func openAt(t *testing.T, ordinal int) driver.Device {
	t.Helper()
	if onMac || missing != "" {
		t.Skip("no simulated Metal: make test-metal builds it")
	}
	return sim.Open(t, "sim-metal", ordinal, nil)
}

func TestSimulatedInfo(t *testing.T) {
	info := open(t).Info()
	assert.Equal(t, "sim-metal:0", info.ID)
	assert.True(t, info.Simulated)
	assert.False(t, info.IsGPU(), "never reported as real")
	assert.Regexp(t, `^apple\d+$`, info.Arch)
	assert.Equal(t, features(info.Arch), info.Features)
	assert.True(t, info.UnifiedMemory)
	assert.Positive(t, info.TotalMemory)
	assert.Positive(t, info.MaxGroupSize)
	assert.Positive(t, info.LocalMemory)
}

// The simulated device aligns blocks of local memory to 128 bytes.
func TestSimulatedLaunch(t *testing.T) {
	d := open(t)
	sim.Launch(t, d, d.Info().LocalMemory-384)
}

// Launches for which Metal would end the program, or read wrong data, are refused, and the stream
// continues.
func TestSimulatedConstant(t *testing.T) {
	for ordinal, align := range []int64{4, 256} { // Apple's GPUs, others
		d := openAt(t, ordinal)
		l, s, mem := sim.Single(t, d, 1024, "pick",
			`kernel void pick(constant float *from, global float *to) { to[0] = from[0]; }`)
		host := make([]byte, 1024)
		for i := range 256 {
			binary.LittleEndian.PutUint32(host[4*i:], uint32(i))
		}
		ctx := context.Background()
		require.NoError(t, s.Upload(ctx, mem, host))
		to := driver.Memory{Handle: mem.Handle, Size: 4}
		launch := func(offset, size int64) error {
			from := driver.Memory{Handle: mem.Handle, Offset: offset, Size: size}
			l.Args = []driver.Arg{{Kind: driver.ArgMemory, Memory: from}, {Kind: driver.ArgMemory, Memory: to}}
			return s.Launch(l)
		}
		err := launch(align/2, 4)
		require.ErrorIs(t, err, driver.ErrInvalidArgument)
		assert.ErrorContains(t, err, fmt.Sprintf("multiple of %d bytes: it is %d", align, align/2))
		require.NoError(t, launch(3*256, 4))
		require.NoError(t, s.Download(ctx, host[:4], to))
		assert.EqualValues(t, 3*64, binary.LittleEndian.Uint32(host))
	}
}

// An empty view may begin at the end of its buffer.
func TestSimulatedNothing(t *testing.T) {
	l, s, mem := sim.Single(t, open(t), 4096, "touch",
		`kernel void touch(global float *none, global float *to) { to[0] = 7; }`)
	end := driver.Memory{Handle: mem.Handle, Offset: mem.Size}
	l.Args = []driver.Arg{{Kind: driver.ArgMemory, Memory: end}, {Kind: driver.ArgMemory, Memory: mem}}
	require.NoError(t, s.Launch(l))
	host := make([]byte, 4)
	require.NoError(t, s.Download(context.Background(), host, driver.Memory{Handle: mem.Handle, Size: 4}))
	assert.Equal(t, float32(7), math.Float32frombits(binary.LittleEndian.Uint32(host)))
}

// Values whose size differs from that of the kernel's parameters are refused, both if each has a
// buffer index and if they are in one struct because there are too many.
func TestSimulatedValueSizes(t *testing.T) {
	d := open(t)
	for _, count := range []int{1, 40} {
		var params, sum strings.Builder
		for i := range count {
			fmt.Fprintf(&params, ", int v%d", i)
			fmt.Fprintf(&sum, " + v%d", i)
		}
		l, s, mem := sim.Single(t, d, 4, "add", "kernel void add(global int *to"+params.String()+") { to[0] = 0"+sum.String()+
			"; }")
		l.Args = []driver.Arg{{Kind: driver.ArgMemory, Memory: mem}}
		for i := range count {
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: 4})
			l.Data = binary.LittleEndian.AppendUint64(l.Data, uint64(i+1))
		}
		host := make([]byte, 4)
		l.Args[count].Size = 8
		assert.ErrorIs(t, s.Launch(l), driver.ErrInvalidArgument, "%d values", count)
		l.Args[count].Size = 4
		require.NoError(t, s.Launch(l))
		require.NoError(t, s.Download(context.Background(), host, mem))
		assert.EqualValues(t, count*(count+1)/2, binary.LittleEndian.Uint32(host))
	}
}

// Values in one struct have Metal's offsets: a struct of two ints has the size of a long, but not
// its alignment.
func TestSimulatedStruct(t *testing.T) {
	const pointers = 28
	var params strings.Builder
	for i := range pointers {
		fmt.Fprintf(&params, "global float *p%d, ", i)
	}
	text := "struct pair { int a, b; };\nkernel void gather(" + params.String() +
		`char c, float4 v, local float *l, short s, struct pair q, float3 w, uchar last) {
		l[0] = c;
		p0[0] = l[0];
		vstore4(v, 0, p0 + 1);
		p0[5] = s;
		p0[6] = q.a;
		p0[7] = q.b;
		vstore3(w, 0, p0 + 8);
		p27[11] = last;
	}`
	for ordinal := range 2 {
		l, s, mem := sim.Single(t, openAt(t, ordinal), 48, "gather", text)
		for range pointers {
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: mem})
		}
		give := func(size int, value any) {
			offset := len(l.Data)
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: offset, Size: size})
			data, err := binary.Append(l.Data, binary.LittleEndian, value)
			require.NoError(t, err)
			l.Data = append(data, make([]byte, offset+16-len(data))...)
		}
		give(1, int8(-1))
		give(16, [4]float32{2, 3, 4, 5})
		l.Args = append(l.Args, driver.Arg{Kind: driver.ArgLocal, Size: 16})
		give(2, int16(-6))
		give(8, [2]int32{7, 8})
		give(16, [3]float32{9, 10, 11})
		give(1, uint8(212))
		require.NoError(t, s.Launch(l))
		host := make([]byte, 48)
		require.NoError(t, s.Download(context.Background(), host, mem))
		var got [12]float32
		_, err := binary.Decode(host, binary.LittleEndian, &got)
		require.NoError(t, err)
		assert.Equal(t, [12]float32{-1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11, 212}, got)
	}
}

// Fast math is on only if a program's options request it, in every version of the language: only
// with fast math the difference of infinity and itself is 0.
func TestSimulatedFastMath(t *testing.T) {
	d := open(t)
	for _, fast := range []bool{false, true} {
		for _, version := range []string{"-std=metal3.1", "-std=metal3.2", "-w"} {
			options := []string{version}
			if fast {
				options = append(options, "-cl-fast-relaxed-math")
			}
			l, s, mem := sim.Single(t, d, 4, "difference",
				`kernel void difference(global float *to, float x) { to[0] = x - x; }`, options...)
			l.Args = []driver.Arg{{Kind: driver.ArgMemory, Memory: mem}, {Kind: driver.ArgValue, Size: 4}}
			l.Data = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.Inf(1))))
			require.NoError(t, s.Launch(l))
			host := make([]byte, 4)
			require.NoError(t, s.Download(context.Background(), host, mem))
			got := math.Float32frombits(binary.LittleEndian.Uint32(host))
			assert.Equal(t, fast, got == 0, "%v: %v", options, got)
		}
	}
}

// A kernel in the device's own language.
func TestSimulatedNative(t *testing.T) { sim.Native(t, open(t), source.Metal) }
