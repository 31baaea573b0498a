package rocm

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// object makes the smallest possible code object with that note.
func object(note []byte) []byte {
	le := binary.LittleEndian
	section := le.AppendUint32(nil, 7)
	section = le.AppendUint32(section, uint32(len(note)))
	section = le.AppendUint32(section, noteMetadata)
	section = append(append(section, "AMDGPU\x00\x00"...), note...)
	const header, row = 64, 64
	b := append([]byte("\x7fELF\x02\x01\x01\x40"), make([]byte, 8)...)
	b = le.AppendUint16(le.AppendUint16(b, 3), 224)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, 0), 0), uint64(header))
	b = le.AppendUint32(b, 0)
	for _, n := range []uint16{header, 56, 0, row, 3, 2} {
		b = le.AppendUint16(b, n)
	}
	at := uint64(header + 3*row)
	rows := [][10]uint64{{}, {0: 1, 1: 7, 4: at, 5: uint64(len(section))},
		{0: 7, 1: 3, 4: at + uint64(len(section)), 5: 17}}
	for _, r := range rows {
		b = le.AppendUint32(le.AppendUint32(b, uint32(r[0])), uint32(r[1]))
		for _, n := range []uint64{r[2], r[3], r[4], r[5]} {
			b = le.AppendUint64(b, n)
		}
		b = le.AppendUint32(le.AppendUint32(b, 0), 0)
		b = le.AppendUint64(le.AppendUint64(b, 1), 0)
	}
	return append(append(b, section...), "\x00.note\x00.shstrtab\x00"...)
}

// notes of one kernel: {"amdhsa.kernels": [{".name": "cc_kernel_k", ".vgpr_count": 300, ...}]}
const note = "\x81\xaeamdhsa.kernels\x91\x86\xa5.name\xabcc_kernel_k\xab.vgpr_count\xcd\x01\x2c" +
	"\xbb.private_segment_fixed_size\x0c\xb9.group_segment_fixed_size\xce\x00\x00\x40\x00\xb8" +
	".max_flat_workgroup_size\xcd\x04\x00\xaf.wavefront_size\x40"

func TestCodeObject(t *testing.T) {
	k, err := codeObject(object([]byte(note)))
	require.NoError(t, err)
	assert.Equal(t, []driver.KernelInfo{{Name: "k", Implementation: "hip", MaxGroup: 1024, GroupMultiple: 64,
		LocalBytes: 16384, Registers: 300, SpillBytes: 12}}, k)
}

func TestCodeObjectRefuses(t *testing.T) {
	whole := object([]byte(note))
	for n := range len(whole) {
		if _, err := codeObject(whole[:n]); err != nil {
			assert.ErrorIs(t, err, driver.ErrFormat, "%d bytes", n)
		}
	}
	for name, note := range map[string]string{
		"nothing": "", "a number": "\x07", "two values": "\x80\x80", "no kernels": "\x80",
		"kernels of a wrong type": "\x81\xaeamdhsa.kernels\x01",
		"kernel without a name":   "\x81\xaeamdhsa.kernels\x91\x80", "key twice": "\x82\xa1a\x01\xa1a\x01",
		"key that is none": "\x81\x01\x01",
		"long string":      "\xdb\xff\xff\xff\xff", "long list": "\xdd\xff\xff\xff\xff", "long table": "\xdf\xff\xff\xff\xff",
		"extension": "\xd4\x01\x01", "unused": "\xc1",
	} {
		_, err := codeObject(object([]byte(note)))
		assert.ErrorIs(t, err, driver.ErrFormat, name)
	}
	deep := make([]byte, 1000)
	for i := range deep {
		deep[i] = 0x91
	}
	_, err := unpack(append(deep, 0))
	assert.ErrorIs(t, err, errDeep)
}

func TestUnpack(t *testing.T) {
	for in, want := range map[string]any{
		"\xc0": nil, "\xc2": false, "\xc3": true, "\x7f": uint64(127), "\xff": int64(-1), "\xcc\xff": uint64(255),
		"\xcd\x01\x00":         uint64(256),
		"\xce\x00\x01\x00\x00": uint64(65536), "\xcf\x00\x00\x00\x01\x00\x00\x00\x00": uint64(1 << 32),
		"\xd0\x80": int64(-128), "\xd0\x01": uint64(1),
		"\xd1\x80\x00": int64(-32768), "\xd3\xff\xff\xff\xff\xff\xff\xff\xff": int64(-1), "\xca\x3f\x80\x00\x00": 1.0,
		"\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00": 1.0,
		"\xa2ab":                               "ab", "\xd9\x02ab": "ab", "\xda\x00\x02ab": "ab", "\xc4\x01a": []byte("a"),
		"\x90":             []any{},
		"\x92\x01\xa1b":    []any{uint64(1), "b"},
		"\xdc\x00\x01\x05": []any{uint64(5)}, "\x81\xa1a\x91\x01": map[string]any{"a": []any{uint64(1)}},
		"\xde\x00\x01\xa1a\x01": map[string]any{"a": uint64(1)},
	} {
		got, err := unpack([]byte(in))
		assert.NoError(t, err, "%q", in)
		assert.Equal(t, want, got, "%q", in)
	}
}

func FuzzCodeObject(f *testing.F) {
	f.Add(object([]byte(note)))
	f.Add([]byte(note))
	f.Fuzz(func(t *testing.T, b []byte) {
		if kernels, err := codeObject(b); err == nil {
			for _, k := range kernels {
				assert.GreaterOrEqual(t, k.Registers, 0)
				assert.GreaterOrEqual(t, k.SpillBytes, int64(0))
			}
		} else {
			assert.ErrorIs(t, err, driver.ErrFormat)
		}
		unpack(b)
	})
}

// TestSpills: memory that is used in place of registers is reported, for an array that is indexed.
func TestSpills(t *testing.T) {
	c, _ := compiler(t)
	unit, err := source.Parse(`
__attribute__((reqd_work_group_size(1024, 1, 1)))
kernel void spill(global float *p, int at) {
	float v[100];
	for (int i = 0; i < 100; i++) v[i] = p[i * 64];
	p[0] = v[at];
}`, source.Options{Name: "spill.cl"})
	require.NoError(t, err)
	built, err := c.CompileFor(context.Background(), &driver.Config{}, "gfx906", unit, nil)
	require.NoError(t, err)
	require.Len(t, built.Kernels, 1)
	assert.GreaterOrEqual(t, built.Kernels[0].SpillBytes, int64(400))
	assert.Equal(t, 1024, built.Kernels[0].MaxGroup)
}
