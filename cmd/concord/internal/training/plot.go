package training

// concord plot: how a training went.

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/picture"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/nn"
)

// Plot returns the command plot.
func Plot(a *app.App) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "plot FILE",
		Short: "Show how a training went: loss and metrics of each epoch, as a table or a picture",
		Long: `Plot reads the history of a training from a checkpoint of train, for which it needs no device. It
prints a line for each epoch, or with --out draws curves of the losses and the metrics: of the
examples that the network learns from, and of those that are kept for validation.`,
		Example: `  concord plot digits.safetensors
  concord plot digits.safetensors --out digits.svg
  concord plot digits.safetensors --json`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&out, "out", "", "draw into this file: .svg or .png")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		if err := picture.Check("--out", out); err != nil {
			return err
		}
		if err := a.Claim(files.Picture, out); err != nil {
			return err
		}
		h, err := nn.LoadHistory(args[0])
		if err != nil {
			return needsCheckpoint(err)
		}
		if out != "" {
			if err := plotHistory(ctx, a, h, filepath.Base(args[0]), out); err != nil {
				return err
			}
		}
		switch {
		case a.JSON:
			return a.Document(h)
		case out == "":
			writeHistory(a, h)
		}
		return nil
	})
}

// plotHistory draws a history into a file.
func plotHistory(ctx context.Context, a *app.App, h *nn.History, title, file string) error {
	return a.Save(ctx, file, func(w io.Writer) error { return drawHistory(w, h, title, file) })
}

// writeHistory prints a table.
func writeHistory(a *app.App, h *nn.History) {
	t := &ui.Table{}
	head, names := []string{"EPOCH", "LOSS", "VALIDATION LOSS"}, slices.Sorted(maps.Keys(h.TrainMetrics))
	for _, name := range names {
		name = strings.ToUpper(ui.Readable(name))
		head = append(head, name, "VALIDATION "+name)
	}
	t.Add(append(head, "RATE", "TIME")...)
	cell := func(list []float64, i int) string {
		if i >= len(list) {
			return "-"
		}
		return fmt.Sprintf("%.5g", list[i])
	}
	for i := range h.Epochs() {
		row := []string{fmt.Sprint(i + 1), cell(h.TrainLoss, i), cell(h.ValLoss, i)}
		for _, name := range names {
			row = append(row, cell(h.TrainMetrics[name], i), cell(h.ValMetrics[name], i))
		}
		t.Add(append(row, cell(h.LearningRate, i), h.EpochTimes[i].Round(time.Millisecond).String())...)
	}
	t.Write(a.Stdout, "")
	if h.Stopped != "" {
		a.Printf("stopped: %s\n", ui.Readable(h.Stopped))
	}
}
