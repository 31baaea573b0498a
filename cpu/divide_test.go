//go:build cgo && unix

package cpu

// Division of integers by zero fails, and the least integer by -1 wraps, in every type and form.

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// divisions are the forms of a quotient or remainder of x[0] or of a literal and by, which change x[0]; T is
// the type, and value the result for the least value of T and -1.
var divisions = []struct{ name, form, value string }{
	{"quotient", "x[0] = x[0] / by", "least"},
	{"remainder", "x[0] = x[0] % by", "zero"},
	{"assigned", "x[0] /= by", "least"},
	{"assigned_remainder", "x[0] %= by", "zero"},
	{"lanes", "x[0] = ((T4)(x[0]) / (T4)(1, by, 1, 1)).y", "least"},
	{"lanes_by_scalar", "x[0] = ((T4)(x[0]) % by).z", "zero"},
	{"lanes_assigned", "T4 v = x[0]; v.yx /= (T2)(by); x[0] = v.x", "least"},
	{"one", "x[0] = 1 / by", "minus"},
	{"one_remainder", "x[0] = 1 % by", "zero"},
	{"discarded", "x[0] = 0 / by", "zero"},
}

func TestIntegerDivision(t *testing.T) {
	needCompiler(t)
	d := openDevice(t)
	types := []string{"char", "short", "int", "long", "uchar", "ushort", "uint", "ulong"}
	if testing.Short() {
		types = []string{"short", "int", "ulong"}
	}
	text := "kernel void literals(global int *x) { x[0] = INT_MIN / -1; x[1] = INT_MIN % -1; x[2] = ((int2)(INT_MIN) / " +
		"-1).x; }\n" +
		"kernel void literal_zero(global int *x) { if (x[0] == 0) x[0] = 5 / 0; }\n"
	for _, typ := range types {
		for _, f := range divisions {
			text += fmt.Sprintf("kernel void %s_%s(global %[1]s *x, %[1]s by) { %[3]s; }\n", typ, f.name,
				strings.NewReplacer("T4", typ+"4", "T2", typ+"2").Replace(f.form))
		}
	}
	u := parse(t, text)
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	defer m.Close()
	run := func(name string, x []byte, by []byte) ([]byte, error) {
		k, err := m.Kernel(name)
		require.NoError(t, err)
		s := openStream(t, d)
		l := launchOf(k, 1, upload(t, s, x))
		if by != nil {
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Size: len(by)})
			l.Data = by
		}
		require.NoError(t, s.Launch(l))
		return x, s.Download(background(t), x, l.Args[0].Memory)
	}
	for _, typ := range types {
		size := map[string]int{"char": 1, "short": 2, "int": 4, "long": 8}[strings.TrimPrefix(typ, "u")]
		least := make([]byte, size)
		least[size-1] = 0x80
		ones := []byte(strings.Repeat("\xff", size))
		for _, f := range divisions {
			name := typ + "_" + f.name
			_, err := run(name, append([]byte(nil), least...), make([]byte, size))
			require.ErrorIs(t, err, driver.ErrLaunch, name)
			assert.Contains(t, err.Error(), "division by zero in group (0,0,0)", name)
			if typ[0] == 'u' {
				continue
			}
			got, err := run(name, append([]byte(nil), least...), ones)
			require.NoError(t, err, name)
			want := map[string][]byte{"least": least, "zero": make([]byte, size), "minus": ones}[f.value]
			assert.Equal(t, want, got, name)
		}
	}
	got, err := run("literals", make([]byte, 12), nil)
	require.NoError(t, err)
	assert.Equal(t, []byte{0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x80}, got)
	_, err = run("literal_zero", make([]byte, 4), nil)
	assert.ErrorIs(t, err, driver.ErrLaunch)
}

// Processors that do not fault for a division by zero read an address instead. The prelude has the same one.
func TestDivisionByZeroWithoutTrap(t *testing.T) {
	needCompiler(t)
	d := openDevice(t)
	u := parse(t, fmt.Sprintf("kernel void astray(global char *x) { x[0] = *(global const char *)%#xul; }", dividesAt))
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	defer m.Close()
	k, err := m.Kernel("astray")
	require.NoError(t, err)
	s := openStream(t, d)
	l := launchOf(k, 1, upload(t, s, make([]byte, 1)))
	require.NoError(t, s.Launch(l))
	err = s.Download(background(t), make([]byte, 1), l.Args[0].Memory)
	require.ErrorIs(t, err, driver.ErrLaunch)
	assert.Contains(t, err.Error(), "division by zero in group (0,0,0)")
	prelude, err := os.ReadFile("../source/internal/render/prelude/host_math.h")
	require.NoError(t, err)
	assert.Contains(t, string(prelude), fmt.Sprintf("(volatile const char *)%#x;", dividesAt))
}
