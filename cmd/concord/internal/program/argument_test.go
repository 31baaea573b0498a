package program

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

func TestParseArgument(t *testing.T) {
	for text, want := range map[string]any{
		"f32:1.5": float32(1.5), "f64:-2e300": -2e300, "i8:-128": int8(-128), "u8:0xff": uint8(255),
		"i16:7": int16(7), "u16:65535": uint16(65535), "i32:-7": int32(-7), "u32:7": uint32(7),
		"i64:-9223372036854775808": int64(-1 << 63), "u64:18446744073709551615": uint64(1<<64 - 1),
		"f16:1": runtime.Float16(0x3c00), "bf16:1": runtime.BFloat16(0x3f80), "f32: 3": float32(3),
		"i32:010": int32(10), "i32:-007": int32(-7), "u64:00": uint64(0), "u8:0o17": uint8(15), "i64:0b11": int64(3),
		"f32:010": float32(10),
	} {
		arg, err := parseArgument(text)
		require.NoError(t, err, text)
		assert.Equal(t, []any{want}, arg.value, text)
		assert.Equal(t, want, arg.launch(source.Param{Width: 1}), text)
	}
	arg, err := parseArgument("@dir/x.npy")
	require.NoError(t, err)
	assert.Equal(t, "dir/x.npy", arg.file)
	arg, err = parseArgument("zeros:f16:3,0,5")
	require.NoError(t, err)
	assert.True(t, arg.array)
	assert.Equal(t, []int{3, 0, 5}, arg.shape)
	assert.Equal(t, 0, elements(arg.shape))
	arg, err = parseArgument("local:f64:32")
	require.NoError(t, err)
	assert.Equal(t, runtime.Local(256), arg.launch(source.Param{}))
	arg, err = parseArgument("f32:1,2,3")
	require.NoError(t, err)
	assert.Equal(t, []byte{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 0, 0},
		arg.launch(source.Param{Width: 3, Size: 16}),
		"a vector of three has the room of four")
}

func TestParseArgumentRefuses(t *testing.T) {
	for _, text := range []string{
		"", "@", "7", "f32", "f32:", "f32:x", "f32:1,", "f31:1", "i8:128", "u8:-1", "u8:256", "i32:1.5", "f32:1e99",
		"zeros", "zeros:f32", "zeros:f32:", "zeros:f32:-1", "zeros:f32:x", "zeros:x:1", "zeros:f32:4294967296,4294967296",
		"local:f32", "local:f32:0", "local:f32:4294967296",
	} {
		_, err := parseArgument(text)
		assert.Error(t, err, text)
	}
}

func TestArgumentCheck(t *testing.T) {
	floats := source.Param{Pointer: true, Space: source.Global, Kind: source.Float, Width: 1, Size: 4}
	local := source.Param{Pointer: true, Space: source.Local, Kind: source.Float, Width: 1, Size: 4}
	half := source.Param{Pointer: true, Space: source.Global, Kind: source.Half, Width: 1, Size: 2}
	short := source.Param{Pointer: true, Space: source.Global, Kind: source.UShort, Width: 1, Size: 2}
	object := source.Param{Pointer: true, Space: source.Global, Kind: source.Struct, Width: 1, Size: 12}
	value := source.Param{Kind: source.Float, Width: 1, Size: 4}
	four := source.Param{Kind: source.Float, Width: 4, Size: 16}
	for _, tc := range []struct {
		text  string
		param source.Param
		ok    bool
	}{
		{"zeros:f32:4", floats, true}, {"zeros:f64:4", floats, false}, {"f32:1", floats, false},
		{"local:f32:4", floats, false},
		{"local:f32:4", local, true}, {"zeros:f32:4", local, false}, {"f32:1", local, false},
		{"zeros:f16:4", half, true}, {"zeros:u16:4", half, false}, {"zeros:bf16:4", half, false},
		{"zeros:bf16:4", short, true}, {"zeros:u16:4", short, true}, {"zeros:f32:12", object, true},
		{"f32:1", value, true}, {"f64:1", value, false}, {"i32:1", value, false}, {"f32:1,2", value, false},
		{"zeros:f32:1", value, false}, {"local:f32:1", value, false},
		{"f32:1,2,3,4", four, true}, {"f32:1,2,3", four, false}, {"f32:1", four, false},
	} {
		arg, err := parseArgument(tc.text)
		require.NoError(t, err)
		err = arg.check(tc.param)
		assert.Equal(t, tc.ok, err == nil, "%s for %+v: %v", tc.text, tc.param, err)
	}
}
