package training

// concord predict: what a trained network says of examples, or how it continues a text.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/tensor"
)

// prediction is what a network says of one example.
type prediction struct {
	Class       int        `json:"class"`
	Probability app.Number `json:"probability"`
}

// predictReport is the document of predict.
type predictReport struct {
	Device      string       `json:"device"`
	Model       string       `json:"model"`
	Prompt      string       `json:"prompt,omitempty"`
	Text        string       `json:"text,omitempty"`
	Predictions []prediction `json:"predictions,omitempty"`
}

// predictFlags are the flags of predict alone.
type predictFlags struct {
	out, prompt string
	length      int
	temperature float64
}

// Predict returns the command predict.
func Predict(a *app.App) *cobra.Command {
	var l flags
	var p predictFlags
	cmd := &cobra.Command{
		Use:   "predict FILE",
		Short: "Say what a trained network makes of examples, or how it continues a text",
		Long: `Predict reads a network from a file of train and applies it to all examples of --data, which need no labels. It
prints a line for each: its number, the most probable class and the probability of that. --out writes the
probabilities of all classes, [examples, classes] of f32.

A network that has learned from a text continues --prompt, or the end of the text of --data, by --length bytes. Each is
drawn from the probabilities of the network, sharpened by a --temperature below 1; with 0 it is the most probable one.
--model, --data and --classes have to name the same network as with train.`,
		Example: `  concord predict digits.safetensors --data ~/mnist
  concord predict digits.safetensors --model cnn --data x.npy --out probabilities.npy
  concord predict text.safetensors --model transformer --prompt "Licensed under " --length 300`,
		Args: cobra.ExactArgs(1),
	}
	networkFlags(cmd, &l)
	cmd.Flags().StringVar(&p.out, "out", "", "write the probabilities of all classes to this file, .npy")
	cmd.Flags().StringVar(&p.prompt, "prompt", "", "the text to continue")
	cmd.Flags().IntVar(&p.length, "length", 200, "how many bytes to continue a text by")
	cmd.Flags().Float64Var(&p.temperature, "temperature", 0.7, "how much the next byte is left to chance, from 0 on")
	cmd.Flags().Uint64Var(&l.seed, "seed", 1, "the seed of the bytes that are drawn")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		text := p.prompt != "" || isText(l.data)
		switch {
		case p.length < 1:
			return app.Usagef("--length %d: it has to be 1 or more", p.length)
		case !(p.temperature >= 0) || math.IsInf(p.temperature, 1):
			return app.Usagef("--temperature %v: it has to be finite and not negative", p.temperature)
		case l.given("prompt") && p.prompt == "":
			return app.Usagef("--prompt is empty, so that there is nothing to continue")
		case p.out != "" && text:
			return app.Usagef("--out takes the probabilities of classes; a text goes to standard output")
		case p.out != "" && !files.IsStdout(p.out) && !files.IsArray(p.out):
			return app.Usagef("--out %s: the name of a file ends in .npy", p.out)
		case text && l.given("batch"):
			return app.Usagef("--batch is for examples; a text is continued byte by byte")
		}
		for _, flag := range []string{"length", "temperature", "seed"} {
			if !text && l.given(flag) {
				return app.Usagef("--%s is for a text to continue: that of --prompt, or of a file of --data", flag)
			}
		}
		if err := a.Claim(files.Array, p.out); err != nil {
			return err
		}
		if text {
			return continueText(ctx, a, &l, &p, args[0])
		}
		return predict(ctx, a, &l, &p, args[0])
	})
}

// predict prints classes.
func predict(ctx context.Context, a *app.App, l *flags, p *predictFlags, file string) (err error) {
	size, err := l.batchSize(false)
	if err == nil && size == 0 {
		err = app.Usagef("--batch auto is for training; predict takes a number")
	}
	if err != nil {
		return err
	}
	st, d, err := openNetwork(ctx, a, l, func(s *tensor.Scope) (dataset, error) { return l.dataset(ctx, s, false) })
	if err != nil {
		return l.hintPrompt(err)
	}
	defer func() { err = errors.Join(err, st.close()) }()
	if err := l.load(ctx, st.model, file); err != nil {
		return l.hintPrompt(err)
	}
	n := d.X.Dim(0)
	list := make([]prediction, 0, n)
	out := npy.Array{Type: driver.F32, Shape: []int{n, 0}}
	bar := a.Progress(n)
	defer bar.End()
	for first := 0; first < n; first += size {
		rows, err := st.probabilities(ctx, d.X, first, min(size, n-first))
		if err != nil {
			return fmt.Errorf("%s: %w", l.model, err)
		}
		classes := len(rows) / min(size, n-first)
		out.Shape[1] = classes
		for row := range slices.Chunk(rows, classes) {
			best := 0
			for i, x := range row {
				if x > row[best] {
					best = i
				}
			}
			list = append(list, prediction{best, app.Number(row[best])})
		}
		if p.out != "" {
			if out.Data, err = binary.Append(out.Data, binary.LittleEndian, rows); err != nil {
				return err
			}
		}
		bar.At(min(first+size, n), n)
	}
	if p.out != "" {
		if err := a.Save(ctx, p.out, func(w io.Writer) error { return npy.Write(w, out) }); err != nil {
			return err
		}
	}
	return a.Show(predictReport{Device: st.dev.String(), Model: l.model, Predictions: list}, func() {
		for i, s := range list {
			a.Printf("%d\t%d\t%.6f\n", i, s.Class, s.Probability)
		}
	})
}

// hintPrompt adds to an error what is easily forgotten: without --prompt and --data, a network is asked for
// the classes of images.
func (l *flags) hintPrompt(err error) error {
	if l.given("data") || !errors.Is(err, nn.ErrData) && !errors.Is(err, nn.ErrConfig) {
		return err
	}
	return fmt.Errorf("%w; if it has learned from a text, it needs --prompt, the text to continue", err)
}

// probabilities returns those of the classes of n examples, a row for each. No memory of the device stays in use.
func (st *network) probabilities(ctx context.Context, x *tensor.Tensor, first, n int) ([]float32, error) {
	work := st.scope.Scope()
	defer work.Close()
	places := make([]int32, n)
	for i := range places {
		places[i] = int32(first + i)
	}
	// What is taken at places in a scope belongs to that scope, and so do the results.
	logits, err := st.model.Predict(ctx, x.Take(0, tensor.From(work, places, n)), nil)
	if err != nil {
		return nil, err
	}
	if logits.Rank() != 2 || logits.Dim(1) < 1 {
		return nil, fmt.Errorf("%w: the results are not one row of classes for each example: %v", nn.ErrConfig,
			logits.Shape())
	}
	return tensor.Read[float32](ctx, logits.Softmax(-1).Cast(tensor.F32))
}

// continueText continues a text.
func continueText(ctx context.Context, a *app.App, l *flags, p *predictFlags, file string) (err error) {
	prompt := []byte(p.prompt)
	if p.prompt == "" {
		if prompt, err = readText(ctx, l.data); err != nil {
			return err
		}
		if len(prompt) == 0 {
			return fmt.Errorf("%s: it is empty, so that there is nothing to continue: %w", l.data, nn.ErrData)
		}
		prompt = prompt[max(len(prompt)-textSteps, 0):]
	}
	st, _, err := openNetwork(ctx, a, l, func(*tensor.Scope) (dataset, error) {
		return dataset{text: true, In: textSpec()}, nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	if err := l.load(ctx, st.model, file); err != nil {
		return err
	}
	text := slices.Clone(prompt)
	random := rand.New(rand.NewPCG(l.seed, 0))
	bar := a.Progress(p.length)
	defer bar.End()
	for range p.length {
		logits, err := st.nextByte(ctx, text[max(len(text)-textSteps, 0):])
		if err != nil {
			return err
		}
		text = append(text, sample(logits, p.temperature, random))
		bar.Step()
	}
	said := printable(text[len(prompt):])
	return a.Show(predictReport{Device: st.dev.String(), Model: l.model, Prompt: printable(prompt), Text: said}, func() {
		a.Printf("%s%s\n", a.Paint(ui.Bold, printable(prompt)), said)
	})
}

// nextByte returns what the network says of the byte behind a text of up to textSteps bytes, for each byte.
func (st *network) nextByte(ctx context.Context, text []byte) ([]float32, error) {
	work := st.scope.Scope()
	defer work.Close()
	window := make([]byte, textSteps) // zeros follow the text: what is said of a byte does not depend on those behind it
	copy(window, text)
	y, err := st.model.Predict(ctx, tensor.From(work, window, 1, textSteps), nil)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(y.Shape(), []int{1, textSteps, 256}) {
		return nil, fmt.Errorf("%w: a network that continues texts has results of shape [%d 256] for each, not %v",
			nn.ErrConfig, textSteps, y.Shape()[1:])
	}
	return tensor.Read[float32](ctx, y.Narrow(1, len(text)-1, 1).Flatten().Copy())
}

// sample returns one of the indices of logits by their probabilities, of which a small temperature prefers the
// large ones.
func sample(logits []float32, temperature float64, random *rand.Rand) byte {
	best := slices.Index(logits, slices.Max(logits))
	if temperature == 0 || best < 0 { // of NaN
		return byte(max(best, 0))
	}
	weights, sum := make([]float64, len(logits)), 0.0
	for i, x := range logits {
		weights[i] = math.Exp(float64(x-logits[best]) / temperature)
		sum += weights[i]
	}
	at := random.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return byte(i)
		}
	}
	return byte(best)
}

// printable returns a text of a network, or of a file, as it may reach a terminal.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(string(text), string(unicode.ReplacementChar)))
}
