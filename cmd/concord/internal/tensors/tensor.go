// Package tensors has the commands about files of tensors: what is in them, and their weights in few bits.
package tensors

// concord tensor: what is in files of arrays.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime/driver"
)

// tensorFile is one file in the document of tensor.
type tensorFile struct {
	File     string            `json:"file"`
	Format   string            `json:"format"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Elements int64             `json:"elements"` // of all tensors
	Bytes    int64             `json:"bytes"`
	Tensors  []*fileTensor     `json:"tensors"`

	close func() error
}

// fileTensor is one tensor of a file.
type fileTensor struct {
	Name     string       `json:"name,omitempty"` // an array of NumPy has none
	Type     string       `json:"type"`
	Shape    []int        `json:"shape"`
	Elements int64        `json:"elements"`
	Bytes    int64        `json:"bytes"`
	Stats    *tensorStats `json:"stats,omitempty"` // not of types that Concord does not compute with

	elem   driver.Type // NoType for such a type
	data   []byte
	decode func() ([]float32, error) // of quantized numbers, whose elem is F32; nil of others
}

// reads returns the bytes of the elements, as their statistics read them.
func (t *fileTensor) reads() int64 {
	switch {
	case t.elem == driver.NoType:
		return 0
	case t.decode != nil:
		return t.Elements * int64(t.elem.Size())
	}
	return t.Bytes
}

// longRead is the number of bytes from which a bar shows how far the reading is.
const longRead = 64 << 20

// Tensor returns the command tensor.
func Tensor(a *app.App) *cobra.Command {
	var noStats bool
	var as named
	cmd := &cobra.Command{
		Use:   "tensor FILE...",
		Short: "List the tensors in .npy, .safetensors and .gguf files, with statistics",
		Long: `Tensor lists the tensors in files of NumPy (.npy), of Hugging Face (.safetensors) and of ggml (.gguf):
name, type, shape, bytes, and statistics of the elements, of quantized ones as they are decoded, without
padding. MIN, MAX, MEAN and STD are those of the finite
elements, computed in float64; STD is that of the whole, as numpy.std. NAN, INF and ZEROS are numbers
of elements. A dash is what does not exist: statistics without a finite element, and of types such as
f8_e4m3 that Concord does not compute with, or of I2_S unless --as says whose it is.

Files are mapped, not loaded, so that they may be larger than the memory; big-endian arrays of NumPy
are loaded, and quantized tensors are decoded one at a time. --no-stats reads only the headers of mapped files.`,
		Example: `  concord tensor model.safetensors
  concord tensor --no-stats model-*.safetensors
  concord tensor --as I2S_M1 ternary.gguf
  concord tensor --json x.npy y.npy`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVar(&noStats, "no-stats", false, "do not read the elements, only the headers")
	as.flag(cmd)
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		f, err := as.format()
		if err != nil {
			return err
		}
		return tensor(ctx, a, args, f, !noStats)
	})
}

func tensor(ctx context.Context, a *app.App, paths []string, named quant.Format, stats bool) error {
	for _, path := range paths { // a wrong name should not be found after long work
		if formatOf(path) == "" {
			return app.Usagef("%s: the name of a file ends in .npy, .safetensors or .gguf", path)
		}
	}
	list := []*tensorFile{}
	var wrong error // of files that cannot be read, after the others
	for _, path := range paths {
		f, err := files.Wait(ctx, func() (*tensorFile, error) { return openTensors(path, named) })
		if err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		defer f.close()
		list = append(list, f)
	}
	if stats {
		if err := readTensors(ctx, a, list); err != nil {
			return errors.Join(wrong, err)
		}
	}
	if a.JSON {
		d := struct {
			Files []*tensorFile `json:"files"`
			Error string        `json:"error,omitempty"`
		}{Files: list}
		if wrong != nil {
			d.Error = wrong.Error()
		}
		return errors.Join(wrong, a.Document(d))
	}
	for i, f := range list {
		if i > 0 {
			a.Println()
		}
		writeTensors(a, f, stats)
	}
	return wrong
}

// formatOf returns the format of a file by its name, or "" for others.
func formatOf(path string) string {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npy", ".safetensors", ".gguf":
		return ext[1:]
	}
	return ""
}

// openTensors reads the header of a file. named says what ambiguous types of a GGUF file are.
func openTensors(path string, named quant.Format) (*tensorFile, error) {
	f := &tensorFile{File: path, Format: formatOf(path), Tensors: []*fileTensor{}, close: func() error { return nil }}
	read := f.openSafetensors
	switch f.Format {
	case "npy":
		read = f.openArray
	case "gguf":
		read = func() error { return f.openGGUF(named) }
	}
	if err := survive(path, read); err != nil {
		return nil, err
	}
	for _, t := range f.Tensors {
		f.Elements += t.Elements
		f.Bytes += t.Bytes
	}
	return f, nil
}

func (f *tensorFile) openSafetensors() error {
	in, err := safetensors.Open(f.File)
	if err != nil {
		return err
	}
	f.Metadata, f.close = in.Metadata(), in.Close
	for _, name := range in.Names() {
		e, _ := in.Tensor(name)  // it is there
		elem, _ := e.Type.Elem() // NoType is what has no statistics
		f.Tensors = append(f.Tensors, &fileTensor{
			Name: name, Type: string(e.Type), Shape: e.Shape, Elements: int64(e.Len()), Bytes: int64(len(e.Data)), elem: elem,
			data: e.Data,
		})
	}
	return nil
}

func (f *tensorFile) openGGUF(named quant.Format) error {
	in, err := gguf.Open(f.File)
	if err != nil {
		return err
	}
	f.Metadata, f.close = map[string]string{}, in.Close
	for _, p := range in.Metadata() {
		f.Metadata[p.Key] = valueText(p.Value)
	}
	for _, e := range in.Tensors() {
		t := &fileTensor{Name: e.Name, Type: strings.ToLower(e.Type.String()), Shape: in.Shape(e),
			Elements: int64(in.Numbers(e)), Bytes: int64(len(e.Data)), data: e.Data}
		f.Tensors = append(f.Tensors, t)
		format, err := in.Format(e, named)
		switch {
		case errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrFormat) && named == 0:
			t.Type = e.Type.String()
			continue
		case err == nil && format == 0:
			t.elem, err = driver.ParseType(t.Type)
		case err == nil:
			t.Type, t.elem = format.String(), driver.F32
			t.decode = func() ([]float32, error) {
				x := make([]float32, in.Numbers(e))
				return x, in.Floats(x, inMemory(e), named)
			}
			if t.Elements > 0 {
				_, err = in.Matrix(e, named) // the data is as long as the shape says, for which memory is taken
			}
		}
		if err != nil {
			in.Close()
			return fmt.Errorf("%s: %w", f.File, err)
		}
	}
	return nil
}

func (f *tensorFile) openArray() error {
	in, err := npy.Map(f.File)
	switch {
	case err == nil:
		f.close = in.Close
	case errors.Is(err, driver.ErrUnsupported): // such as big-endian: it has to be converted
		if err := files.Fits(f.File); err != nil {
			return err
		}
		read, err := npy.ReadFile(f.File)
		if err != nil {
			return err
		}
		in = &npy.Mapped{Type: read.Type, Shape: read.Shape, Data: read.Data}
	default:
		return err
	}
	t := &fileTensor{Type: in.Type.String(), Shape: in.Shape, Bytes: int64(len(in.Data)), elem: in.Type, data: in.Data}
	t.Elements = t.Bytes / int64(in.Type.Size())
	if in.Bool {
		t.Type = string(safetensors.Bool)
	}
	f.Tensors = append(f.Tensors, t)
	return nil
}

// readTensors computes the statistics of all tensors.
func readTensors(ctx context.Context, a *app.App, list []*tensorFile) error {
	var all, done, shown int64 // bytes, and the MiB that the bar shows
	for _, f := range list {
		for _, t := range f.Tensors {
			all += t.reads()
		}
	}
	var bar *ui.Progress
	if all >= longRead {
		bar = a.Progress(int(all >> 20))
		defer bar.End()
	}
	for _, f := range list {
		for _, t := range f.Tensors {
			if t.elem == driver.NoType {
				continue
			}
			bar.Doing("MiB  " + ui.Readable(cmp.Or(t.Name, filepath.Base(f.File))))
			err := survive(f.File, func() (err error) {
				data := t.data
				if t.decode != nil {
					x, err := t.decode()
					if err != nil {
						return err
					}
					if data, err = binary.Append(nil, binary.LittleEndian, x); err != nil {
						return err
					}
				}
				t.Stats, err = statistics(ctx, t.elem, data, func(bytes int) {
					if done += int64(bytes); done>>20 > shown {
						shown = done >> 20
						bar.At(int(shown), int(all>>20))
					}
				})
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// survive calls work, which reads a mapped file. A page that is not there any more is an error.
func survive(path string, work func() error) error {
	err := unlessGone(work)
	if err == errGone {
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

var errGone = fmt.Errorf("it became shorter, or cannot be read, at some place: %w", driver.ErrCorrupt)

// apart calls work, which reads a mapped file, on a goroutine that it leaves alone when ctx is done: of pages
// that are not there any more, its result is an error.
func apart[T any](ctx context.Context, work func() (T, error)) (T, error) {
	return blocking.Call(ctx, func() (result T, err error) {
		err = unlessGone(func() (err error) { result, err = work(); return err })
		return result, err
	}, func(T) {})
}

func unlessGone(work func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = errGone
		default:
			panic(r)
		}
	}()
	return work()
}

// writeTensors prints a file as a table.
func writeTensors(a *app.App, f *tensorFile, stats bool) {
	a.Printf("%s: %s, %d elements, %s\n", a.Paint(ui.Bold, ui.Readable(f.File)),
		ui.Quantity(len(f.Tensors), "tensor"), f.Elements, driver.FormatBytes(f.Bytes))
	for _, name := range slices.Sorted(maps.Keys(f.Metadata)) {
		a.Printf("  %s: %s\n", ui.Readable(name), ui.Readable(ui.Shortened(f.Metadata[name])))
	}
	if len(f.Tensors) == 0 {
		return
	}
	t := &ui.Table{}
	if stats {
		t.Add("TENSOR", "TYPE", "SHAPE", "BYTES", "MIN", "MAX", "MEAN", "STD", "NAN", "INF", "ZEROS")
	} else {
		t.Add("TENSOR", "TYPE", "SHAPE", "BYTES")
	}
	for _, row := range f.Tensors {
		name := ui.Readable(row.Name)
		if f.Format == "npy" {
			name = "-"
		}
		cells := []string{name, row.Type, ui.ShapeText(row.Shape), driver.FormatBytes(row.Bytes)}
		if stats {
			cells = append(cells, row.Stats.cells()...)
		}
		t.Add(cells...)
	}
	t.Write(a.Stdout, "")
}

// cells returns the statistics' part of a row.
func (s *tensorStats) cells() []string {
	if s == nil {
		return []string{"-", "-", "-", "-", "-", "-", "-"}
	}
	var cells []string
	for _, x := range []app.Number{s.Min, s.Max, s.Mean, s.Std} {
		switch f := float64(x); {
		case math.IsNaN(f):
			cells = append(cells, "-")
		case f == math.Trunc(f) && math.Abs(f) < 1e10:
			cells = append(cells, strconv.FormatFloat(f, 'f', -1, 64)) // all digits of an integer
		default:
			cells = append(cells, strconv.FormatFloat(f, 'g', 6, 64))
		}
	}
	for _, n := range []int64{s.NaN, s.Inf, s.Zeros} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return cells
}
