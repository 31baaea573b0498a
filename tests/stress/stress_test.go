// Package stress runs the stress set of the front end (source/internal/render/testdata/stress: small
// programs, each for a family of constructs, with their expected results) on every device of the
// machine, through package runtime.
package stress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStress: every device that runs portable programs computes the expected results. A device
// without double precision skips the programs that need it.
func TestStress(t *testing.T) {
	files, err := filepath.Glob("../../source/internal/render/testdata/stress/*.cl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	eachDevice(t, func(t *testing.T, d *runtime.Device) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".cl"), func(t *testing.T) { stress(t, d, file) })
		}
	})
}

// eachDevice runs f as a subtest for every device that runs portable programs, of simulated ones the first of
// each backend.
func eachDevice(t *testing.T, f func(t *testing.T, d *runtime.Device)) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	ran := map[string]bool{}
	for _, p := range probes {
		for _, info := range p.Devices {
			if info.ID == "cpu:reference" || info.NativeIndex > 0 && info.Simulated {
				continue
			}
			t.Run(info.ID, func(t *testing.T) {
				d, err := s.Open(t.Context(), info.ID)
				require.NoError(t, err)
				defer d.Close()
				c, ok := d.Driver().(driver.Compiler)
				if !ok {
					t.Skip("runs no portable programs")
				}
				if _, err := c.Identity(t.Context()); errors.Is(err, runtime.ErrUnsupported) {
					t.Skip(err)
				}
				ran[p.Backend] = true
				f(t, d)
			})
		}
	}
	for _, backend := range s.Config().Required {
		assert.True(t, ran[backend], "CONCORD_REQUIRE names %s", backend)
	}
}

// lacksMetal are files with features that Metal does not have.
var lacksMetal = map[string]string{
	"cxxnames.cl": "goto", "gotoswitch.cl": "goto", "strings.cl": "printf",
}

// stress runs one file: each "// run:" line, compared with the "// want:" lines
// below it. source/internal/render/testdata/driver.c describes their form.
func stress(t *testing.T, d *runtime.Device, file string) {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(b)
	if strings.Contains(text, "// host only:") && d.Info().Backend == "opencl" {
		t.Skip("the file says that OpenCL devices refuse it")
	}
	features := d.Features()
	unit, err := source.Parse(text, source.Options{Name: filepath.Base(file), Features: features})
	if err != nil && !features.FP64 && strings.Contains(err.Error(), "double") {
		t.Skipf("needs double precision: %v", err)
	}
	if err != nil && !features.Int64Atomic && strings.Contains(err.Error(), "cl_khr_int64_base_atomics") {
		t.Skipf("needs atomics of 64 bits: %v", err)
	}
	require.NoError(t, err)
	prog, err := d.Program(t.Context(), unit)
	if construct := lacksMetal[filepath.Base(file)]; construct != "" && strings.HasSuffix(d.Info().Backend, "metal") {
		require.ErrorIs(t, err, source.ErrUnsupported)
		require.ErrorContains(t, err, construct)
		t.Skip(err)
	}
	require.NoError(t, err)
	defer prog.Close()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		spec, ok := strings.CutPrefix(line, "// run: ")
		if !ok {
			continue
		}
		var want []string
		for _, w := range lines[i+1:] {
			rest, ok := strings.CutPrefix(w, "// want: ")
			if !ok {
				break
			}
			want = append(want, strings.TrimSpace(rest))
		}
		if name, _, _ := strings.Cut(strings.TrimPrefix(spec, "kernel="), " "); !features.FP64 {
			if _, there := unit.Kernel(name); !there {
				continue // the file has it #ifdef cl_khr_fp64
			}
		}
		got, err := launch(t, d, prog, spec)
		if assert.NoError(t, err, "%s:%d", file, i+1) {
			assert.Equal(t, want, got, "%s:%d: %s", file, i+1, spec)
		}
	}
}

// launch runs one line and returns its output buffers as text.
func launch(t *testing.T, d *runtime.Device, prog *runtime.Program, spec string) ([]string, error) {
	fields := map[string]string{"local": "1"}
	for _, f := range strings.Fields(spec) {
		key, value, _ := strings.Cut(f, "=")
		fields[key] = value
	}
	k, err := prog.Kernel(fields["kernel"])
	if err != nil {
		return nil, err
	}
	type output struct {
		typ string
		buf *runtime.Buffer
	}
	var args []any
	var outs []output
	for i, a := range splitArgs(fields["args"]) {
		head, rest, _ := strings.Cut(a, ":")
		switch head {
		case "local":
			n, err := strconv.Atoi(rest)
			require.NoError(t, err)
			args = append(args, runtime.Local(n))
		case "buf", "out":
			parts := strings.SplitN(rest, ":", 3)
			n, err := strconv.Atoi(parts[1])
			require.NoError(t, err)
			data := make([]byte, n*width(parts[0]))
			if len(parts) == 3 {
				fill(t, data, parts[0], parts[2])
			}
			whole, err := runtime.Upload(t.Context(), d, data)
			require.NoError(t, err)
			defer whole.Close()
			buf := typed(t, whole, k.Params()[i])
			defer buf.Close()
			args = append(args, buf)
			if head == "out" {
				outs = append(outs, output{parts[0], whole})
			}
		default:
			values := strings.Split(rest, ",")
			data := make([]byte, len(values)*width(head))
			fill(t, data, head, rest)
			args = append(args, data)
		}
	}
	global, local := dims(t, fields["global"]), dims(t, fields["local"])
	if err := d.Stream().Launch(k, runtime.Grid{Items: global, Group: local}, args...); err != nil {
		return nil, err
	}
	var got []string
	for _, o := range outs {
		data := make([]byte, o.buf.Len())
		if err := runtime.Read(t.Context(), o.buf, data); err != nil {
			return nil, err
		}
		got = append(got, show(data, o.typ))
	}
	return got, d.Sync(t.Context())
}

// typed returns a view of a buffer of bytes with the element type of a parameter.
func typed(t *testing.T, b *runtime.Buffer, p source.Param) *runtime.Buffer {
	i := slices.IndexFunc(driver.Types(), func(typ runtime.Type) bool { return typ.Kind() == p.Kind && typ != runtime.BF16 })
	if i < 0 { // void or a struct: any buffer will do
		i = slices.Index(driver.Types(), runtime.U8)
	}
	v, err := b.As(driver.Types()[i])
	require.NoError(t, err)
	return v
}

// splitArgs splits a list of arguments only at commas after which an argument begins, since values
// may contain commas.
func splitArgs(s string) []string {
	var args []string
	for part := range strings.SplitSeq(s, ",") {
		if strings.Contains(part, ":") || len(args) == 0 {
			args = append(args, part)
		} else {
			args[len(args)-1] += "," + part
		}
	}
	return args
}

func dims(t *testing.T, s string) (d [3]int) {
	d = [3]int{1, 1, 1}
	for i, part := range strings.Split(s, ",") {
		n, err := strconv.Atoi(part)
		require.NoError(t, err)
		d[i] = n
	}
	return d
}

func width(typ string) int {
	n, _ := strconv.Atoi(typ[1:])
	return n / 8
}

// put writes element i: integers from v, floating ones from f.
func put(data []byte, typ string, i int, f float64, v uint64) {
	if typ == "f32" {
		v = uint64(math.Float32bits(float32(f)))
	} else if typ == "f64" {
		v = math.Float64bits(f)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(data[i*width(typ):(i+1)*width(typ)], b[:])
}

// fill sets data; how is zero, iota, alt, rand or a list of values.
func fill(t *testing.T, data []byte, typ, how string) {
	n, seed := len(data)/width(typ), uint32(12345)
	switch how {
	case "zero":
	case "iota":
		for i := range n {
			put(data, typ, i, float64(i), uint64(i))
		}
	case "alt":
		for i := range n {
			sign := int64(1)
			if i%2 == 1 {
				sign = -1
			}
			put(data, typ, i, 0.5*float64(sign)*float64(i), uint64(sign*int64(i)))
		}
	case "rand":
		for i := range n {
			seed = seed*1664525 + 1013904223
			put(data, typ, i, float64(seed>>8)/16777216, uint64(seed>>4))
		}
	default:
		for i, s := range strings.Split(how, ",") {
			f, v := number(t, s)
			put(data, typ, i, f, v)
		}
	}
}

func number(t *testing.T, s string) (float64, uint64) {
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return float64(v), uint64(v)
	}
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		return float64(v), v
	}
	f, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return f, uint64(int64(f))
}

// show formats elements as the driver in C does.
func show(data []byte, typ string) string {
	var out []string
	for i := range len(data) / width(typ) {
		var b [8]byte
		copy(b[:], data[i*width(typ):(i+1)*width(typ)])
		v := binary.LittleEndian.Uint64(b[:])
		shift := 64 - 8*width(typ)
		switch {
		case typ == "f32":
			out = append(out, float(float64(math.Float32frombits(uint32(v))), 9))
		case typ == "f64":
			out = append(out, float(math.Float64frombits(v), 17))
		case typ[0] == 'u':
			out = append(out, strconv.FormatUint(v, 10))
		default:
			out = append(out, strconv.FormatInt(int64(v<<shift)>>shift, 10))
		}
	}
	return strings.Join(out, " ")
}

// float formats as C's %.<digits>g does.
func float(f float64, digits int) string {
	switch {
	case f != f:
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(fmt.Sprint(f)), "+")
	}
	return fmt.Sprintf("%.*g", digits, f)
}
