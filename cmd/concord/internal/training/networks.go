package training

// The networks that --model names.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// models are the networks by their names, for examples of a shape. They return nil for examples that they do not take.
var models = map[string]func(in nn.Spec, classes int, text bool) []nn.Layer{"mlp": mlp, "cnn": cnn, "lstm": lstm,
	"transformer": transformer}

// modelNames says which networks there are.
func modelNames() string {
	return strings.Join(slices.Sorted(maps.Keys(models)), ", ") + ", or FILE.json"
}

// described reports whether --model is a file that describes the network.
func (l *flags) described() bool { return strings.EqualFold(filepath.Ext(l.model), ".json") }

// layers returns the layers of --model.
func (l *flags) layers(ctx context.Context, in nn.Spec, text bool) ([]nn.Layer, error) {
	if l.described() {
		if l.given("classes") {
			return nil, app.Usagef("--classes: %s itself says how many there are", l.model)
		}
		description, err := files.Contents(ctx, l.model, files.MostDescription)
		if err != nil {
			return nil, err
		}
		layers, err := nn.LayersFromJSON(description)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.model, err)
		}
		return layers, nil
	}
	make := models[l.model]
	if make == nil {
		return nil, app.Usagef("no model %q: there are %s", l.model, modelNames())
	}
	classes := l.classes
	if text {
		if l.given("classes") && classes != 256 {
			return nil, app.Usagef("--classes %d: a text has 256, the bytes", classes)
		}
		classes = 256
	}
	if classes < 1 {
		return nil, app.Usagef("--classes %d: it has to be 1 or more", classes)
	}
	layers := make(in, classes, text)
	if layers == nil {
		if text {
			return nil, app.Usagef("the model %s does not take examples %v of a text: --model lstm and --model transformer do",
				l.model, in)
		}
		return nil, app.Usagef("the model %s does not take examples %v", l.model, in)
	}
	return layers, nil
}

// numbers are the layers that make floating-point numbers of examples: of bytes numbers from 0 to 1.
func numbers(in nn.Spec) []nn.Layer {
	switch in.Type {
	case tensor.F32, tensor.F64:
		return nil
	case tensor.U8:
		return []nn.Layer{nn.Scale{Factor: 1. / 255}}
	}
	return []nn.Layer{nn.Scale{Factor: 1}}
}

func mlp(in nn.Spec, classes int, text bool) []nn.Layer {
	if text {
		return nil
	}
	return append(numbers(in), nn.Flatten{}, nn.Dense{Out: 512, Act: nn.ReLU}, nn.Dense{Out: 256, Act: nn.ReLU},
		nn.Dense{Out: classes})
}

// cnn takes images [rows, columns] or [channels, rows, columns].
func cnn(in nn.Spec, classes int, text bool) []nn.Layer {
	list := numbers(in)
	switch n := len(in.Shape); {
	case text || n != 2 && n != 3:
		return nil
	case n == 2:
		list = append(list, nn.Reshape{Shape: []int{1, in.Shape[0], in.Shape[1]}})
	}
	three, two := []int{3, 3}, []int{2, 2}
	return append(list, nn.Conv{Filters: 32, Size: three, Act: nn.ReLU}, nn.Conv{Filters: 64, Size: three, Act: nn.ReLU},
		nn.MaxPool{Size: two},
		nn.Flatten{}, nn.Dense{Out: 128, Act: nn.ReLU}, nn.Dense{Out: classes})
}

// lstm takes texts, and sequences [steps, width] such as the rows of an image.
func lstm(in nn.Spec, classes int, text bool) []nn.Layer {
	switch {
	case text:
		return []nn.Layer{nn.Embedding{Count: 256, Width: 64}, nn.LSTM{Units: 128, Sequences: true}, nn.Dense{Out: classes}}
	case len(in.Shape) != 2:
		return nil
	}
	return append(numbers(in), nn.LSTM{Units: 128}, nn.Dense{Out: classes})
}

// transformer takes what lstm takes.
func transformer(in nn.Spec, classes int, text bool) []nn.Layer {
	if text {
		block := nn.Transformer{Heads: 4, Hidden: 256, Causal: true, Dropout: 0.1}
		return []nn.Layer{nn.Embedding{Count: 256, Width: 64, Init: nn.Gaussian(0.02)}, nn.Position{Max: in.Shape[0]}, block,
			block, nn.LayerNorm{}, nn.Dense{Out: classes}}
	}
	if len(in.Shape) != 2 {
		return nil
	}
	block := nn.Transformer{Heads: 4, Hidden: 128}
	return append(numbers(in), nn.Dense{Out: 64}, nn.Position{Max: in.Shape[0]}, block, block, nn.LayerNorm{},
		nn.Flatten{}, nn.Dense{Out: classes})
}

// load reads what a training saved. The mistake that is easily made is to name another network than that of the
// training.
func (l *flags) load(ctx context.Context, m *nn.Model, file string) error {
	err := m.Load(ctx, file)
	if errors.Is(err, nn.ErrData) {
		return fmt.Errorf("%w; is it of the network that --model %s names? --model, --data and --classes have to be those "+
			"of the training", err, l.model)
	}
	return needsCheckpoint(err)
}

// needsCheckpoint adds to the error of a file of another format which one is needed.
func needsCheckpoint(err error) error {
	if errors.Is(err, runtime.ErrFormat) {
		return fmt.Errorf("%w; it has to be a checkpoint, the file that train --checkpoint writes", err)
	}
	return err
}
