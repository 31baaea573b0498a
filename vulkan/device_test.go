package vulkan

// What the shim does with a driver. Any will do; on most machines it is Mesa's lavapipe.

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// open opens the first device, or skips the test if there is none.
func open(t *testing.T) driver.Device {
	t.Helper()
	p := sim.Registered(t, "vulkan").Probe(t.Context(), &driver.Config{})
	if p.State != driver.Available {
		require.NotContains(t, strings.Split(os.Getenv("CONCORD_REQUIRE"), ","), "vulkan", p.Reason)
		t.Skip(p.Reason)
	}
	return sim.Open(t, "vulkan", p.Devices[0].NativeIndex, nil)
}

// bench is a device with a stream and memory of it.
type bench struct {
	*testing.T
	d driver.Device
	s driver.Stream
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, d: open(t)}
	var err error
	b.s, err = b.d.NewStream()
	require.NoError(t, err)
	return b
}

func (b *bench) memory(n int64) driver.Memory {
	m, err := b.d.Alloc(n, driver.OnDevice)
	require.NoError(b, err)
	return m
}

func (b *bench) read(m driver.Memory) []byte {
	to := make([]byte, m.Size)
	require.NoError(b, b.s.Download(context.Background(), to, m))
	return to
}

func (b *bench) kernel(name, text string) driver.Kernel {
	m := sim.Load(b.T, b.d, text)
	b.Cleanup(func() { assert.NoError(b, m.Close()) })
	k, err := m.Kernel(name)
	require.NoError(b, err)
	return k
}

func part(m driver.Memory, offset, size int64) driver.Memory {
	return driver.Memory{Handle: m.Handle, Offset: offset, Size: size, Kind: m.Kind}
}

// TestFills: every offset, size and pattern has the bytes that a loop on the host makes, and no others.
func TestFills(t *testing.T) {
	b := newBench(t)
	const size = 256
	m := b.memory(size)
	for _, pattern := range []string{"a", "ab", "abab", "abcd", "abcdefgh", "abcdabcd"} {
		for offset := range int64(9) {
			for n := int64(0); n+offset <= 41; n += int64(len(pattern)) {
				require.NoError(t, b.s.Fill(m, []byte{0}))
				require.NoError(t, b.s.Fill(part(m, offset, n), []byte(pattern)))
				want := make([]byte, size)
				copy(want[offset:offset+n], bytes.Repeat([]byte(pattern), size))
				require.Equal(t, want, b.read(m), "%q at %d, %d bytes", pattern, offset, n)
			}
		}
	}
}

// TestLargeFill: a fill that has more groups than a dispatch may have.
func TestLargeFill(t *testing.T) {
	b := newBench(t)
	const size = 65536*64*4 + 24
	m := b.memory(size)
	require.NoError(t, b.s.Fill(m, []byte("abcdefgh")))
	assert.True(t, bytes.Equal(bytes.Repeat([]byte("abcdefgh"), size/8), b.read(m)))
}

// TestManyArguments: arguments that do not fit into push constants are passed in memory, also in many launches before
// the first has run, and in graphs.
func TestManyArguments(t *testing.T) {
	b := newBench(t)
	var parameters, sum []string
	for i := range 40 {
		parameters = append(parameters, fmt.Sprintf("uint a%d", i))
		sum = append(sum, fmt.Sprintf("a%d * %du", i, i+1))
	}
	k := b.kernel("weigh", "kernel void weigh(global uint *to, uint at, "+strings.Join(parameters, ", ")+") {\n to[at] = "+
		strings.Join(sum, " + ")+";\n}")
	const launches = 30000 // some MiB of arguments: their memory is used again
	m := b.memory(4 * launches)
	launch := func(at uint32) {
		l := driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1},
			Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: m}}}
		for i := range uint32(41) {
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: 4})
			value := at
			if i > 0 {
				value = at * i
			}
			l.Data = binary.LittleEndian.AppendUint32(l.Data, value)
		}
		require.NoError(t, b.s.Launch(&l))
	}
	var factor uint32
	for i := range uint32(40) {
		factor += (i + 1) * (i + 1)
	}
	check := func() {
		t.Helper()
		got := b.read(m)
		for at := range uint32(launches) {
			require.Equal(t, at*factor, binary.LittleEndian.Uint32(got[4*at:]), at)
		}
	}
	for at := range uint32(launches) {
		launch(at)
	}
	check()
	c := b.s.(driver.Capturer)
	require.NoError(t, c.BeginCapture())
	require.NoError(t, b.s.Fill(m, []byte{0xff}))
	for at := range uint32(launches) {
		launch(at)
	}
	g, err := c.EndCapture(nil)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, g.Launch(b.s))
	}
	check()
	require.NoError(t, g.Close())
}

// TestLargeGrid: a grid with more groups than a dispatch may have along each dimension is cut, and items know their
// places in all of it.
func TestLargeGrid(t *testing.T) {
	b := newBench(t)
	k := b.kernel("count", `kernel void count(global uint *to) {
	size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
	size_t w = get_global_size(0), h = get_global_size(1);
	if (get_group_id(0) != x || get_num_groups(1) != h) return;
	atomic_add(&to[(x + w * (y + h * z)) % 64], (uint)(x + y + z));
}`)
	for _, global := range [][3]int{{70001, 3, 1}, {2, 70001, 1}, {1, 2, 70001}} {
		m := b.memory(256)
		require.NoError(t, b.s.Fill(m, []byte{0}))
		require.NoError(t, b.s.Launch(&driver.Launch{Kernel: k, Dim: 3, Global: global, Local: [3]int{1, 1, 1},
			Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: m}}}))
		want := make([]uint32, 64)
		for z := range global[2] {
			for y := range global[1] {
				for x := range global[0] {
					want[(x+global[0]*(y+global[1]*z))%64] += uint32(x + y + z)
				}
			}
		}
		got := make([]uint32, 64)
		require.NoError(t, binary.Read(bytes.NewReader(b.read(m)), binary.LittleEndian, got))
		assert.Equal(t, want, got, global)
		require.NoError(t, b.d.Free(m))
	}
}

// TestFreedMemory: memory that is freed while batches use it lives until they are done.
func TestFreedMemory(t *testing.T) {
	b := newBench(t)
	k := b.kernel("add", `kernel void add(global uint *to, global const uint *from) {
	for (int i = 0; i < 2000; i++) to[0] += from[i % 16]; }`)
	to := b.memory(4)
	require.NoError(t, b.s.Fill(to, []byte{0}))
	for range 200 {
		for _, size := range []int64{64, 2 << 20} { // a slot of a slab, a buffer of its own
			from := b.memory(size)
			require.NoError(t, b.s.Fill(from, []byte{1, 0, 0, 0}))
			require.NoError(t, b.s.Launch(&driver.Launch{Kernel: k, Dim: 1, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1},
				Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: to}, {Kind: driver.ArgMemory, Memory: from}}}))
			require.NoError(t, b.d.Free(from))
		}
	}
	assert.EqualValues(t, 2*200*2000, binary.LittleEndian.Uint32(b.read(to)))
}

// TestDamagedPrograms: bytes that are no program are refused, wherever they are cut or changed before the code.
func TestDamagedPrograms(t *testing.T) {
	d := open(t)
	unit, err := source.Parse("kernel void nothing(global int *to) { to[0] = 1; }", source.Options{Name: "nothing.cl"})
	require.NoError(t, err)
	m, err := unit.Module(t.Context())
	require.NoError(t, err)
	whole := pack(m)
	load := func(code []byte) error {
		p, err := d.(driver.Compiler).Load(t.Context(), unit, driver.Binary{Code: seal.Mark("CNCDVND2").Seal(code)})
		if err == nil {
			err = p.Close()
		}
		return err
	}
	require.NoError(t, load(whole))
	for n := range len(whole) {
		require.Error(t, load(whole[:n]), "%d bytes", n)
	}
	for at := 0; at < 16; at++ {
		changed := slices.Clone(whole)
		changed[at] ^= 0x41
		require.ErrorIs(t, load(changed), driver.ErrFormat, "byte %d", at)
	}
}
