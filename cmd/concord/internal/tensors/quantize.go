package tensors

// concord quantize: the weights of a model in few bits.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/quant"
	"github.com/concord-compute/concord/quant/gguf"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/accounts"
	"github.com/concord-compute/concord/runtime/driver"
)

// quantizeFlags are the flags of concord quantize.
type quantizeFlags struct {
	format, method, tile, picture string
	as                            named
	only                          []string
	report                        bool
}

// methods are the values of --method.
var methods = map[string]quant.Method{"exact": quant.Exact, "absmean": quant.AbsMean, "absmax": quant.AbsMax}

// Quantize returns the command quantize.
func Quantize(a *app.App) *cobra.Command {
	f := &quantizeFlags{}
	var lines []string
	for _, q := range writable() {
		lines = append(lines, fmt.Sprintf("  %-7v %s", q, q.About()))
	}
	cmd := &cobra.Command{
		Use:   "quantize IN OUT --format F",
		Short: "Store the weights of a model in few bits per number",
		Long: `Quantize reads the tensors of a .safetensors or .gguf file and writes a .gguf file, in which those
with two or more dimensions have the format F, if their numbers are floats. Rows are padded with
zeros to whole groups, and the file keeps their length. Other floats become 32-bit ones; integers
stay as they are, but .gguf files have neither bools nor unsigned integers, and get the next wider
signed type, of 64 bits at most. Tensors of the training in a checkpoint, such as the optimizer's
states, are left out.

` + strings.Join(lines, "\n") + `

These are the formats that files of GGUF have; package quant has more, for devices and other files.

Without --method each number becomes the nearest that its format has. Of a ternary format that is
-s, 0 or s for the largest magnitude s of a block, so that most ordinary weights become 0; the I2S
and MTL formats take only tensors that consist of -s, 0 and s already. --method makes such numbers
of others first: absmean takes the mean magnitude of a tensor for s, as in training, absmax the
largest, and exact refuses what is not ternary.

--report prints what it cost: the ratio of signal to noise in dB, and the largest error; the time of encoding and
decoding, the memory that the machine uses, and the functions that did it. --histogram draws
the errors of all quantized numbers, in units of their tensor's root mean square.`,
		Example: `  concord quantize model.safetensors model.gguf --format Q4_0 --report
  concord quantize model.gguf ternary.gguf --format TQ2_0 --method absmean --only '*.weight' --histogram errors.png`,
		Args: cobra.ExactArgs(2),
	}
	cmd.Flags().StringVar(&f.format, "format", "", "the format")
	cmd.Flags().StringVar(&f.method, "method", "", "make weights ternary first: exact, absmean or absmax (default: the "+
		"nearest numbers that the format has)")
	cmd.Flags().StringVar(&f.tile, "tile", "", "rows, columns and rows of sub-blocks of the MTL formats, as in 128,96,32")
	f.as.flag(cmd)
	cmd.Flags().StringArrayVar(&f.only, "only", nil, "quantize only tensors whose name matches this pattern; repeatable")
	cmd.Flags().BoolVar(&f.report, "report", false, "print the errors of each tensor")
	cmd.Flags().StringVar(&f.picture, "histogram", "", "draw the errors into this file: .png or .svg")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		return quantize(ctx, a, args[0], args[1], f)
	})
}

// formats are some of the formats that files of GGUF have.
type formats []quant.Format

func formatsOf(keep func(quant.Format, gguf.Type) bool) (list formats) {
	for _, f := range quant.Formats() {
		if t, ok := gguf.TypeOf(f); ok && keep(f, t) {
			list = append(list, f)
		}
	}
	return list
}

func (f formats) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]quant.Format(f)), "[]"), " ", ", ")
}

// writable are those that files are written with.
func writable() formats {
	return formatsOf(func(f quant.Format, _ gguf.Type) bool { return !f.ReadOnly() })
}

// settings returns the layout of the flags, without a shape.
func (f *quantizeFlags) settings() (l quant.Layout, method quant.Method, err error) {
	if f.format == "" {
		return l, 0, app.Usagef("--format is missing; concord quantize --help lists the formats")
	}
	l.Format, err = quant.ParseFormat(f.format)
	if err != nil && !errors.Is(err, driver.ErrInvalidArgument) { // it says what the name could mean
		return l, 0, app.Usagef("--format: %w", err)
	}
	if list := writable(); !slices.Contains(list, l.Format) {
		return l, 0, app.Usagef("--format: no .gguf file is written with %.40q, but with %s", f.format, list)
	}
	if f.method != "" {
		if method = methods[f.method]; method == 0 {
			return l, 0, app.Usagef("--method %q is not exact, absmean or absmax", f.method)
		}
	}
	switch tiled := l.Format == quant.MTL1 || l.Format == quant.MTL2; {
	case tiled && f.tile == "":
		return l, 0, app.Usagef("--format %v needs --tile, the rows, columns and rows of sub-blocks, as in 128,96,32",
			l.Format)
	case !tiled && f.tile != "":
		return l, 0, app.Usagef("--tile is for the MTL formats, not for %v", l.Format)
	}
	if f.tile != "" {
		sizes := strings.Split(f.tile, ",")
		for i, to := range []*int{&l.Tile.BM, &l.Tile.BY, &l.Tile.Sub} {
			if len(sizes) != 3 {
				return l, 0, app.Usagef("--tile %q is not three numbers", f.tile)
			}
			if *to, err = strconv.Atoi(sizes[i]); err != nil {
				return l, 0, app.Usagef("--tile %q: %w", f.tile, err)
			}
		}
	}
	for _, pattern := range f.only {
		if _, err := path.Match(pattern, ""); err != nil {
			return l, 0, app.Usagef("--only %q: %w", pattern, err)
		}
	}
	return l, method, picture.Check("--histogram", f.picture)
}

// quantized is the result of one tensor.
type quantized struct {
	Name   string `json:"name"`
	Shape  []int  `json:"shape"`
	From   string `json:"from"`
	Format string `json:"format"` // or the type of a tensor that is not quantized
	Before int    `json:"bytes_before"`
	Bytes  int    `json:"bytes"`

	SNR      *app.Number `json:"snr_db,omitempty"` // null if nothing changed
	MaxError *app.Number `json:"max_error,omitempty"`
}

func quantize(ctx context.Context, a *app.App, in, out string, f *quantizeFlags) error {
	layout, method, err := f.settings()
	if err != nil {
		return err
	}
	if !strings.EqualFold(filepath.Ext(out), ".gguf") {
		return app.Usagef("%s: the name of the result ends in .gguf", out)
	}
	if files.SameFile(in, out) {
		return app.Usagef("%s: it is the file that is read, too", out)
	}
	if err := errors.Join(a.Claim(files.GGUF, out), a.Claim(files.Picture, f.picture)); err != nil {
		return err
	}
	as, err := f.as.format()
	if err != nil {
		return err
	}
	m, err := openModel(in, as)
	if err != nil {
		return err
	}
	defer m.close()
	var all quant.Quality
	counts := &errorCounts{}
	list := []*quantized{}
	entries, metadata := []gguf.Entry{}, slices.Clone(m.metadata)
	metadata = append(metadata, gguf.Pair{Key: "general.quantization_version", Value: uint32(2)})
	var leftOut []string
	// a checkpoint: what is in it of the training is of no use to the quantized model
	if _, err := nn.LoadHistory(in); err == nil {
		m.weights = slices.DeleteFunc(m.weights, func(w *weight) bool {
			training := strings.HasPrefix(w.name, nn.TrainingPrefix)
			if training {
				leftOut = append(leftOut, w.name)
			}
			return training
		})
	}
	session, err := a.Open(runtime.Config{})
	if err != nil {
		return err
	}
	dev, err := session.Open(ctx, "cpu:0") // codecs work on the host, wherever products run
	if err != nil {
		return err
	}
	defer dev.Close()
	bar := a.Progress(len(m.weights))
	defer bar.End()
	var name string // of the tensor under way
	quantizer, err := quant.NewQuantizer(dev, quant.QuantizerOptions{Progress: func(done, all int) {
		if done < all {
			bar.Doing(fmt.Sprintf("%s, %d %%", ui.Readable(name), int64(done)*100/int64(all)))
		}
	}})
	if err != nil {
		return err
	}
	defer quantizer.Close()
	many := 0
	for _, w := range m.weights {
		e := w.entry(ctx)
		q := &quantized{Name: w.name, Shape: w.shape, From: w.typ, Format: e.Type.String(), Before: w.bytes}
		if w.floats != nil && len(w.shape) >= 2 && w.len() > 0 && matches(f.only, w.name) {
			l := layout
			l.Cols = w.shape[len(w.shape)-1]
			l.Rows = w.len() / l.Cols
			padded, err := l.Padded()
			if err != nil && f.tile != "" {
				err = fmt.Errorf("%w (--tile %s)", err, f.tile)
			}
			if err != nil {
				return fmt.Errorf("tensor %s: %w", ui.Readable(w.name), err)
			}
			var pairs []gguf.Pair
			if e, pairs, err = gguf.NewEntry(w.name, quant.Matrix{Layout: padded, K: l.Cols}); err != nil {
				return err
			}
			e.Shape = append(slices.Clone(w.shape[:len(w.shape)-1]), padded.Cols)
			metadata = append(metadata, pairs...)
			many++
			q.Format = layout.Format.String()
			e.Data = func() ([]byte, error) {
				x, err := apart(ctx, w.floats)
				if err != nil {
					return nil, err
				}
				name = w.name
				packed, back, quality, err := pack(ctx, quantizer, padded, l.Cols, method, x)
				if err != nil {
					return nil, fmt.Errorf("tensor %s: %w%s", ui.Readable(w.name), err, adviceFor(err, l.Format, method))
				}
				if f.picture != "" {
					counts.add(x, back, math.Sqrt(quality.Signal/float64(len(x))))
				}
				all.Add(quality)
				q.SNR, q.MaxError = new(app.Number(quality.SNR)), new(app.Number(quality.MaxError))
				return packed.Data, nil
			}
		}
		e.Data, q.Bytes = watched(ctx, bar, in, e), e.Size
		entries, list = append(entries, e), append(list, q)
	}
	if many == 0 {
		return fmt.Errorf("%s has no tensor to quantize: they have two dimensions or more, and names that --only matches: %w",
			in, driver.ErrInvalidArgument)
	}
	if err := a.Save(ctx, out, func(w io.Writer) error { return gguf.Write(w, metadata, entries) }); err != nil {
		return notWritten(out, err)
	}
	if f.picture != "" {
		if err := a.Save(ctx, f.picture, func(w io.Writer) error {
			return drawErrors(w, counts, fmt.Sprintf("%v of %s, %.1f dB", layout.Format, filepath.Base(in), all.SNR), f.picture)
		}); err != nil {
			return err
		}
	}
	// normally distributed weights keep 1.9 dB, and 5.8 by absmean
	if (layout.Format == quant.TQ10 || layout.Format == quant.TQ20) && method == 0 && all.SNR < 5 {
		fmt.Fprintf(a.Stderr, "%v has three numbers for a block, and little is left of these weights, which are not "+
			"ternary: --method absmean usually loses less\n", layout.Format)
	}
	return writeQuantized(a, in, out, list, leftOut, all, quantizer, f.report)
}

// watched returns the function for the data of an entry, made of the file in, with progress. It ends with the context.
func watched(ctx context.Context, bar *ui.Progress, in string, e gguf.Entry) func() ([]byte, error) {
	return func() ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		bar.Doing(ui.Readable(e.Name))
		defer bar.Step()
		b, err := e.Data()
		if err != nil && ctx.Err() == nil {
			err = &badInput{in, err}
		}
		return b, err
	}
}

// badInput is an error of a file that is read, found while another one is written.
type badInput struct {
	in string
	error
}

func (m *badInput) Unwrap() error { return m.error }

// notWritten says which file an error is of that ended the writing of out. Those of the file system name theirs.
func notWritten(out string, err error) error {
	if m, ok := errors.AsType[*badInput](err); ok {
		out = m.in
	} else if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w", out, err)
}

// adviceFor returns a remedy for numbers that are not ternary.
func adviceFor(err error, f quant.Format, m quant.Method) string {
	switch {
	case !errors.Is(err, driver.ErrInvalidArgument) || errors.Is(err, driver.ErrNumerical):
		return ""
	case m == quant.Exact:
		return " (--method exact takes ternary numbers; --method absmean makes them)"
	}
	return fmt.Sprintf(" (%v stores ternary numbers; --method absmean makes them)", f)
}

// pack quantizes rows of k numbers by a method, and measures the result. back are the numbers that it decodes to.
func pack(ctx context.Context, q *quant.Quantizer, l quant.Layout, k int, method quant.Method,
	x []float32) (m quant.Matrix, back []float32, quality quant.Quality, err error) {
	y := x
	if method != 0 {
		s, err := quant.Scale(method, x)
		if err != nil {
			return m, nil, quality, err
		}
		y = make([]float32, len(x))
		if s > 0 {
			if err := quant.Ternary(y, x, s); err != nil {
				return m, nil, quality, err
			}
		}
	}
	if m, err = quant.New(l); err != nil {
		return m, nil, quality, err
	}
	m.K = k
	if err = q.Encode(ctx, m, y); err != nil {
		return m, nil, quality, err
	}
	back = make([]float32, len(x))
	if err = q.Decode(ctx, back, m); err != nil {
		return m, nil, quality, err
	}
	quality, err = quant.Measure(x, back)
	return m, back, quality, err
}

// errorCounts is a histogram of errors in units of the root mean square of their tensor, from -1 to 1. What
// lies beyond is in the first and the last.
type errorCounts [101]int

func (c *errorCounts) add(x, y []float32, unit float64) {
	if unit == 0 {
		unit = 1
	}
	middle := float64(len(c) / 2)
	for i, v := range x {
		e := (float64(y[i]) - float64(v)) / unit * middle
		c[int(max(0, min(2*middle, math.Round(e+middle))))]++
	}
}

func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// writeQuantized prints the result.
func writeQuantized(a *app.App, in, out string, list []*quantized, leftOut []string, all quant.Quality,
	q *quant.Quantizer, report bool) error {
	before, after := 0, 0
	for _, q := range list {
		before, after = before+q.Before, after+q.Bytes
	}
	return a.Show(struct {
		In       string       `json:"in"`
		Out      string       `json:"out"`
		Before   int          `json:"bytes_before"`
		Bytes    int          `json:"bytes"`
		SNR      app.Number   `json:"snr_db"`
		MaxError app.Number   `json:"max_error"`
		Tensors  []*quantized `json:"tensors"`
		LeftOut  []string     `json:"left_out,omitempty"` // of a checkpoint's training

		Summary string           `json:"summary"`
		Receipt accounts.Receipt `json:"receipt"`
	}{in, out, before, after, app.Number(all.SNR), app.Number(all.MaxError), list, leftOut, q.Stats().Summary(),
		q.Receipt()}, func() {
		if report {
			t := ui.NewTable("TENSOR", "SHAPE", "FROM", "TO", "BYTES", "SNR", "MAX ERROR")
			for _, q := range list {
				cells := []string{ui.Readable(q.Name), ui.ShapeText(q.Shape), q.From, q.Format, driver.FormatBytes(int64(q.Bytes)),
					"-", "-"}
				if q.SNR != nil {
					cells[5], cells[6] = decibels(float64(*q.SNR)), strconv.FormatFloat(float64(*q.MaxError), 'g', 4, 64)
				}
				t.Add(cells...)
			}
			t.Write(a.Stdout, "")
			a.Printf("%s\nRan: %s\n", q.Stats().Summary(), strings.Join(q.Receipt().Kernels, ", "))
		}
		if len(leftOut) > 0 {
			a.Printf("%s is a checkpoint: %s of its training, such as the optimizer's states, left out\n",
				ui.Readable(in), ui.Quantity(len(leftOut), "tensor"))
		}
		a.Printf("%s: %s of tensors became %s, signal to noise %s, largest error %.4g\n", ui.Readable(out),
			driver.FormatBytes(int64(before)), driver.FormatBytes(int64(after)), decibels(all.SNR), all.MaxError)
	})
}

func decibels(snr float64) string {
	if math.IsInf(snr, 1) {
		return "exact"
	}
	return fmt.Sprintf("%.1f dB", snr)
}
