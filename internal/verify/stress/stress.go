// Package stress has the stress set of the front end: small programs, each for a family of constructs that compile
// but could compute something else, with their expected results.
package stress

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

//go:embed programs/*.cl
var files embed.FS

// Program is one program of the set. Its comments say with which arguments its kernels run and what they compute:
//
//	// run: kernel=NAME global=G0[,G1[,G2]] [local=L0[,L1[,L2]]] args=ARG,...
//	// want: the elements of the first output
//	// want: those of the next
//
// An ARG is TYPE:V,... (a value; several make a vector or a struct), buf:TYPE:N:FILL (a buffer of N elements; FILL is
// zero, iota, alt, rand or a list of values), out:TYPE:N[:FILL] (the same, an output), or local:BYTES. TYPE is one of
// i8, u8, i16, u16, i32, u32, i64, u64, f32, f64. A comment "// host only:" says why OpenCL devices refuse a program.
type Program struct {
	Name string // without the folder and the extension
	Text string // OpenCL C
}

// Load returns all programs, in the order of their names.
func Load() ([]Program, error) {
	entries, err := files.ReadDir("programs")
	if err != nil {
		return nil, err
	}
	var list []Program
	for _, e := range entries {
		text, err := files.ReadFile(path.Join("programs", e.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, Program{strings.TrimSuffix(e.Name(), ".cl"), string(text)})
	}
	return list, nil
}

// lacking are programs with constructs that the language of a backend does not have, as its refusal names them.
var lacking = map[string]map[string]string{
	"metal":  {"cxxnames": "goto", "gotoswitch": "goto", "strings": "printf"},
	"vulkan": {"gotoswitch": "a label of a switch inside of another statement", "strings": "printf"},
}

// Check runs the program on a device that runs portable programs, on a stream of its own. It returns what is wrong, or
// why the program does not apply: the device's language has no such construct. On a device without double
// precision, kernels that need it are left out. It waits for the device as long as ctx allows.
func (p Program) Check(ctx context.Context, d *runtime.Device) (skip string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("stress: %s.cl: %w", p.Name, err)
		}
	}()
	if strings.Contains(p.Text, "// host only:") && d.Info().Backend == "opencl" {
		return "the program says that OpenCL devices refuse it", nil
	}
	features := d.Features()
	unit, err := source.Parse(p.Text, source.Options{Name: p.Name + ".cl", Features: features})
	switch {
	case err == nil:
	case !features.FP64 && strings.Contains(err.Error(), "double"):
		return "needs double precision: " + err.Error(), nil
	case !features.Int64Atomic && strings.Contains(err.Error(), "cl_khr_int64_base_atomics"):
		return "needs atomics of 64 bits: " + err.Error(), nil
	default:
		return "", err
	}
	prog, err := d.Program(ctx, unit)
	if construct := lacking[strings.TrimPrefix(d.Info().Backend, "sim-")][p.Name]; construct != "" {
		if errors.Is(err, source.ErrUnsupported) && strings.Contains(err.Error(), construct) {
			return err.Error(), nil
		}
		if err == nil {
			err = errors.Join(fmt.Errorf("builds, though %s has no %s", d.Info().Backend, construct), prog.Close())
		}
	}
	if err != nil {
		return "", err
	}
	defer prog.Close()
	s, err := d.NewStream()
	if err != nil {
		return "", err
	}
	defer s.Close()
	return p.runs(ctx, d, s, prog)
}

// runs does what each "// run:" line says, and compares with the "// want:" lines below it.
func (p Program) runs(ctx context.Context, d *runtime.Device, s *runtime.Stream,
	prog *runtime.Program) (skip string, err error) {
	lines := strings.Split(p.Text, "\n")
	var wrong []error
	found, ran := false, false
	for i, line := range lines {
		spec, ok := strings.CutPrefix(line, "// run: ")
		if !ok {
			continue
		}
		found = true
		var want []string
		for _, w := range lines[i+1:] {
			rest, ok := strings.CutPrefix(w, "// want: ")
			if !ok {
				break
			}
			want = append(want, strings.TrimSpace(rest))
		}
		if name, _, _ := strings.Cut(strings.TrimPrefix(spec, "kernel="), " "); !d.Features().FP64 {
			if _, there := prog.Unit().Kernel(name); !there {
				continue // the text has it #ifdef cl_khr_fp64
			}
		}
		ran = true
		got, err := launch(ctx, d, s, prog, spec)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %s: %w", i+1, spec, err))
		}
	}
	switch {
	case !found:
		return "", errors.New("no run line")
	case !ran:
		return "all of its kernels need double precision", nil
	}
	return "", errors.Join(wrong...)
}

// launch does what one line says, and returns the output buffers as text.
func launch(ctx context.Context, d *runtime.Device, s *runtime.Stream, prog *runtime.Program,
	spec string) (got []string, err error) {
	fields := map[string]string{"local": "1"}
	for _, f := range strings.Fields(spec) {
		key, value, _ := strings.Cut(f, "=")
		fields[key] = value
	}
	k, err := prog.Kernel(fields["kernel"])
	if err != nil {
		return nil, err
	}
	given := splitArgs(fields["args"])
	if len(given) != len(k.Params()) {
		return nil, fmt.Errorf("%d arguments for %d parameters", len(given), len(k.Params()))
	}
	var args []any
	var outs []*runtime.Buffer
	var types []string
	for i, text := range given {
		a, err := parseArg(text)
		if err != nil {
			return nil, err
		}
		switch {
		case a.local > 0:
			args = append(args, runtime.Local(a.local))
		case !a.buffer:
			args = append(args, a.data)
		default:
			whole, err := d.Alloc(runtime.U8, len(a.data))
			if err != nil {
				return nil, err
			}
			defer whole.Close()
			if err := s.Write(ctx, whole, 0, a.data); err != nil {
				return nil, err
			}
			view, err := whole.As(elementOf(k.Params()[i]))
			if err != nil {
				return nil, err
			}
			defer view.Close()
			args = append(args, view)
			if a.out {
				outs, types = append(outs, whole), append(types, a.typ)
			}
		}
	}
	items, err := dims(fields["global"])
	if err != nil {
		return nil, err
	}
	group, err := dims(fields["local"])
	if err != nil {
		return nil, err
	}
	if err := s.Launch(k, runtime.Grid{Items: items, Group: group}, args...); err != nil {
		return nil, err
	}
	for i, b := range outs {
		data := make([]byte, b.Len())
		if err := s.Read(ctx, b, 0, data); err != nil {
			return nil, err
		}
		got = append(got, show(data, types[i]))
	}
	return got, s.Sync(ctx)
}

// elementOf returns the element type of a buffer for a parameter: its own, and any for void or a struct.
func elementOf(p source.Param) runtime.Type {
	i := slices.IndexFunc(driver.Types(), func(typ runtime.Type) bool {
		return typ.Kind() == p.Kind && typ != runtime.BF16
	})
	if i < 0 {
		return runtime.U8
	}
	return driver.Types()[i]
}
