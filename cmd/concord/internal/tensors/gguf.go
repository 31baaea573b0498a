package tensors

// concord gguf: files of ggml's format.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime/driver"
)

// GGUF returns the command gguf.
func GGUF(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gguf",
		Short: "List, check and convert files of quantized models",
		Example: `  concord gguf ls model.gguf
  concord gguf check model.gguf
  concord gguf convert model.gguf model.safetensors`,
		Args: cobra.NoArgs,
		RunE: app.NeedsCommand,
	}
	var as named
	ls := a.RunnableJSON(&cobra.Command{
		Use:     "ls FILE...",
		Short:   "List the metadata and the tensors of .gguf files",
		Example: "  concord gguf ls model.gguf\n  concord gguf ls --json model.gguf",
		Args:    cobra.MinimumNArgs(1),
	}, func(_ context.Context, args []string) error { return listGGUF(a, args) })
	check := a.Runnable(&cobra.Command{
		Use:   "check FILE...",
		Short: "Check every code and scale in .gguf files",
		Long: `Check reads the header and all data: places and sizes, codes that their format does not have, scales
and plain floats that are not finite. Tensors of types that Concord does not decode are counted as
not checked.`,
		Example: "  concord gguf check model.gguf\n  concord gguf check --as I2S_M1 ternary.gguf",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, args []string) error {
		f, err := as.format()
		if err != nil {
			return err
		}
		return checkGGUF(ctx, a, args, f)
	})
	convert := a.Runnable(&cobra.Command{
		Use:   "convert IN OUT",
		Short: "Decode a .gguf file into .safetensors, or put .safetensors into a .gguf file",
		Long: `Convert writes the tensors of IN as 32-bit floats, quantized ones decoded and without padding;
integers stay as they are, but .gguf files have neither bools nor unsigned integers, and get the
next wider signed type, of 64 bits at most. The names of the files end in .gguf or .safetensors. To
quantize, use concord quantize.`,
		Example: "  concord gguf convert model.gguf model.safetensors\n  concord gguf convert model.safetensors model.gguf",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, args []string) error {
		f, err := as.format()
		if err != nil {
			return err
		}
		return convertGGUF(ctx, a, args[0], args[1], f)
	})
	as.flag(check)
	as.flag(convert)
	cmd.AddCommand(ls, check, convert)
	return cmd
}

// named is the flag --as.
type named string

func (n *named) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(n), "as", "", "the format of types that have several meanings, such as I2S_M1 (x86) "+
		"or I2S_M2 (ARM), where the file does not say it")
}

// format returns the format that is named, or 0.
func (n named) format() (quant.Format, error) {
	if n == "" {
		return 0, nil
	}
	f, err := quant.ParseFormat(string(n))
	if t, _ := gguf.TypeOf(f); err != nil && !errors.Is(err, driver.ErrInvalidArgument) {
		return 0, app.Usagef("--as: %w", err)
	} else if err != nil || !t.Several() {
		return 0, app.Usagef("--as: %.40q is not one of %s", string(n), formatsOf(func(f quant.Format, t gguf.Type) bool {
			return t.Several()
		}))
	}
	return f, nil
}

// ggufFile is one file in the document of gguf ls.
type ggufFile struct {
	File     string         `json:"file"`
	Version  uint32         `json:"version"`
	Align    int            `json:"alignment"`
	Metadata map[string]any `json:"metadata"`
	Tensors  []ggufTensor   `json:"tensors"`
}

type ggufTensor struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Number uint32 `json:"type_number"`
	Shape  []int  `json:"shape"`
	Bytes  int    `json:"bytes"`
}

func listGGUF(a *app.App, paths []string) error {
	list := []*ggufFile{}
	var wrong []error
	for _, path := range paths {
		f, err := gguf.Open(path)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		defer f.Close()
		doc := &ggufFile{File: path, Version: f.Version, Align: f.Align, Metadata: map[string]any{}, Tensors: []ggufTensor{}}
		bytes := 0
		t := ui.NewTable("TENSOR", "TYPE", "SHAPE", "BYTES")
		for _, w := range f.Tensors() {
			bytes += len(w.Data)
			doc.Tensors = append(doc.Tensors, ggufTensor{w.Name, w.Type.String(), uint32(w.Type), w.Shape, len(w.Data)})
			t.Add(ui.Readable(w.Name), w.Type.String(), ui.ShapeText(w.Shape), driver.FormatBytes(int64(len(w.Data))))
		}
		for _, p := range f.Metadata() {
			if doc.Metadata[p.Key] = numbersOf(p.Value); !a.JSON {
				continue
			}
			if _, err := json.Marshal(p.Value); err != nil {
				doc.Metadata[p.Key] = fmt.Sprint(p.Value) // NaN and infinities
			}
		}
		if list = append(list, doc); a.JSON {
			continue
		}
		if len(list) > 1 {
			a.Println()
		}
		a.Printf("%s: version %d, %s, %s\n", a.Paint(ui.Bold, ui.Readable(path)), f.Version,
			ui.Quantity(len(doc.Tensors), "tensor"), driver.FormatBytes(int64(bytes)))
		for _, p := range f.Metadata() {
			a.Printf("  %s: %s\n", ui.Readable(p.Key), ui.Readable(ui.Shortened(valueText(p.Value))))
		}
		if len(doc.Tensors) > 0 {
			t.Write(a.Stdout, "")
		}
	}
	if a.JSON && len(wrong) == 0 { // otherwise the document is that of the error
		return a.Document(map[string]any{"files": list})
	}
	return errors.Join(wrong...)
}

// numbersOf returns a value with lists of bytes as lists of wider numbers, since package json makes a text of bytes.
func numbersOf(v any) any {
	switch v := v.(type) {
	case []uint8:
		wide := make([]uint16, len(v))
		for i, b := range v {
			wide[i] = uint16(b)
		}
		return wide
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = numbersOf(x)
		}
		return list
	}
	return v
}

// valueText returns a value, of long lists the beginning and the length.
func valueText(v any) string {
	list := reflect.ValueOf(v)
	const shown = 6
	if list.Kind() != reflect.Slice || list.Len() <= shown {
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%v and %d more", list.Slice(0, shown), list.Len()-shown)
}

func checkGGUF(ctx context.Context, a *app.App, paths []string, named quant.Format) error {
	var wrong []error
	for _, path := range paths {
		err := survive(path, func() error {
			f, err := gguf.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			bar := a.Progress(len(f.Tensors()))
			defer bar.End()
			good, left := 0, 0
			for _, t := range f.Tensors() {
				bar.Doing(ui.Readable(t.Name))
				_, err := apart(ctx, func() (none struct{}, err error) { return none, f.Validate(inMemory(t), named) })
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case err == nil:
					good++
				case errors.Is(err, driver.ErrUnsupported):
					left++
				default:
					wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
				}
				bar.Step()
			}
			a.Printf("%s: %d of %d tensors are good", ui.Readable(path), good, len(f.Tensors()))
			if left > 0 {
				a.Printf(", %d not checked", left)
			}
			a.Println()
			return nil
		})
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

func convertGGUF(ctx context.Context, a *app.App, in, out string, named quant.Format) error {
	to := strings.ToLower(filepath.Ext(out))
	if to != ".gguf" && to != ".safetensors" {
		return app.Usagef("%s: the name of the result ends in .gguf or .safetensors", out)
	}
	if files.SameFile(in, out) {
		return app.Usagef("%s: it is the file that is read, too", out)
	}
	kind := files.GGUF
	if to == ".safetensors" {
		kind = files.Safetensors
	}
	if err := a.Claim(kind, out); err != nil {
		return err
	}
	m, err := openModel(in, named)
	if err != nil {
		return err
	}
	defer m.close()
	bar := a.Progress(len(m.weights))
	defer bar.End()
	var entries []gguf.Entry
	for _, w := range m.weights {
		e := w.entry(ctx)
		if _, ok := plainTypes[safetensorsType(e)]; !ok && to == ".safetensors" {
			return fmt.Errorf("%s: tensor %s: %v cannot be decoded: %w", in, ui.Readable(e.Name), e.Type, driver.ErrUnsupported)
		}
		e.Data = watched(ctx, bar, in, e)
		entries = append(entries, e)
	}
	err = a.Save(ctx, out, func(w io.Writer) error {
		if to == ".gguf" {
			return gguf.Write(w, m.metadata, entries)
		}
		return writeSafetensors(w, m.metadata, entries)
	})
	if err != nil {
		return notWritten(out, err)
	}
	a.Printf("%s: %s\n", ui.Readable(out), ui.Quantity(len(entries), "tensor"))
	return nil
}

func safetensorsType(e gguf.Entry) safetensors.Type {
	return safetensors.Type(strings.ToLower(e.Type.String()))
}

// writeSafetensors writes entries whose types that format has. It keeps the metadata as texts, of long lists
// the beginning.
func writeSafetensors(w io.Writer, metadata []gguf.Pair, entries []gguf.Entry) error {
	texts := map[string]string{}
	for _, p := range metadata {
		texts[strings.ToValidUTF8(p.Key, "\ufffd")] = strings.ToValidUTF8(valueText(p.Value), "\ufffd")
	}
	var list []safetensors.Entry
	for _, e := range entries {
		data, err := e.Data()
		if err != nil {
			return err
		}
		list = append(list, safetensors.Entry{Name: e.Name, Type: safetensorsType(e), Shape: e.Shape, Data: data})
	}
	return safetensors.Encode(w, list, texts)
}
