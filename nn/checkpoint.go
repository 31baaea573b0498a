package nn

// Files of models and of trainings: safetensors, with what is not a tensor as JSON in their metadata. One file
// is replaced as a whole, so that there is never a part of one.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/concord-compute/concord/internal/safetensors"
	"github.com/concord-compute/concord/tensor"
)

// metadataKey is the text of a file that is ours, and version that of files.
const (
	metadataKey = "concord.nn"
	version     = 1
)

// about is what a file says beside its tensors. Of a model it is the first two.
type about struct {
	Version  int
	Network  []string // the layers' names and descriptions
	Config   []string // what has to be the same to go on, "name: value"
	Position position
	History  History
}

// plainHistory is a History without its methods.
type plainHistory History

// jsonHistory is a History as JSON, which has no word for a metric that is not finite: null.
type jsonHistory struct {
	plainHistory
	TrainMetrics, ValMetrics map[string][]*float64
}

// MarshalJSON returns the history as JSON, with null in place of metrics that are not finite.
func (h History) MarshalJSON() ([]byte, error) {
	pointers := func(lists map[string][]float64) map[string][]*float64 {
		out := map[string][]*float64{}
		for name, list := range lists {
			out[name] = make([]*float64, len(list))
			for i, x := range list {
				if isFinite(list[i : i+1]) {
					out[name][i] = &x
				}
			}
		}
		return out
	}
	return json.Marshal(jsonHistory{plainHistory(h), pointers(h.TrainMetrics), pointers(h.ValMetrics)})
}

// UnmarshalJSON reads what MarshalJSON returns, with NaN in place of null.
func (h *History) UnmarshalJSON(text []byte) error {
	var in jsonHistory
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	numbers := func(lists map[string][]*float64) map[string][]float64 {
		out := map[string][]float64{}
		for name, list := range lists {
			out[name] = make([]float64, len(list))
			for i, x := range list {
				if out[name][i] = math.NaN(); x != nil {
					out[name][i] = *x
				}
			}
		}
		return out
	}
	*h = History(in.plainHistory)
	h.TrainMetrics, h.ValMetrics = numbers(in.TrainMetrics), numbers(in.ValMetrics)
	return nil
}

// LoadHistory returns the history in a checkpoint, for which it needs no device. A safetensors file that is
// not a checkpoint is an error that matches [ErrData], and another file one that matches [runtime.ErrFormat].
func LoadHistory(path string) (*History, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nn: history: %w", err)
	}
	defer f.Close()
	a, err := parseAbout(path, f.Metadata())
	if err != nil {
		return nil, err
	}
	return &a.History, nil
}

// parseAbout returns what a checkpoint says beside its tensors.
func parseAbout(path string, metadata map[string]string) (a about, err error) {
	if err := json.Unmarshal([]byte(metadata[metadataKey]), &a); err != nil || a.Config == nil {
		return about{}, fmt.Errorf("%w: %s is not a checkpoint", ErrData, path)
	}
	if a.Version != version || !a.consistent() {
		return about{}, fmt.Errorf("%w: %s is a checkpoint of another version, or contradicts itself", ErrData, path)
	}
	return a, nil
}

func (m *Model) about() about {
	a := about{Version: version}
	for _, r := range m.rows {
		a.Network = append(a.Network, fmt.Sprintf("%s: %s", r.path, r.layer))
	}
	return a
}

// write writes a file, as a whole or not at all.
func write(path string, entries []safetensors.Entry, a about) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("nn: %s: %w", path, err)
	}
	if err := safetensors.Write(path, entries, map[string]string{metadataKey: string(text)}); err != nil {
		return fmt.Errorf("nn: save: %w", err)
	}
	return nil
}

// entry is a tensor of a file.
func entry(name string, t tensor.Type, data []byte, shape ...int) safetensors.Entry {
	return safetensors.Entry{Name: name, Type: safetensors.Type(t.String()), Shape: shape, Data: data}
}

// entries returns parameters and statistics for a file, as rank 0 writes it.
func (m *Model) entries(ctx context.Context, params, states *tensor.Tensor) (list []safetensors.Entry, err error) {
	for i, of := range [][]Param{m.params, m.states} {
		data, err := contents(ctx, m.scope, of, []*tensor.Tensor{params, states}[i])
		if err != nil {
			return nil, err
		}
		if m.split && m.scope.Rank() != 0 {
			continue
		}
		for _, v := range whole(of) {
			list = append(list, entry(v.Name, m.typ, data[v.First*m.typ.Size():][:v.Len()*m.typ.Size()], v.Shape...))
		}
	}
	return list, nil
}

// Save writes parameters and running statistics to a safetensors file by their names, as a whole or not at all. Where
// members of a group divide the network, all of them call it, and rank 0, whose host has all of it, writes the file
// that one device would write.
func (m *Model) Save(ctx context.Context, path string) error {
	list, err := m.entries(ctx, m.values.params, m.values.states)
	if err != nil || m.split && m.scope.Rank() != 0 {
		return err
	}
	return write(path, list, m.about())
}

// open returns the tensors of a file and its metadata, as tensor.Load does, but of parameters that members divide, and
// of rows of these, this member's parts.
func (m *Model) open(ctx context.Context, s *tensor.Scope,
	path string) (ts map[string]*tensor.Tensor, metadata map[string]string, err error) {
	if !m.split {
		return tensor.Load(s, path)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	ts = map[string]*tensor.Tensor{}
	for _, name := range f.Names() {
		e, _ := f.Tensor(name)
		if ts[name], err = m.opened(ctx, s, e); err != nil {
			return nil, nil, fmt.Errorf("%s: %q: %w", path, name, err)
		}
	}
	return ts, f.Metadata(), nil
}

// opened returns a tensor of a file.
func (m *Model) opened(ctx context.Context, s *tensor.Scope, e safetensors.Entry) (*tensor.Tensor, error) {
	typ, err := tensor.ParseType(string(e.Type))
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Concat(m.params, m.states) {
		if v.Name != e.Name || v.Whole == nil {
			continue
		}
		if !slices.Equal(e.Shape, v.Whole) {
			return nil, fmt.Errorf("%w: shape %v instead of %v", ErrData, e.Shape, v.Whole)
		}
		return v.cut(ctx, s, typ, e.Data)
	}
	list := m.params
	switch name, training := strings.CutPrefix(e.Name, TrainingPrefix); {
	case !training || len(e.Shape) != 1:
		list = nil
	case name == bestStates:
		list = m.states
	case name != bestParams && name != "grads" && !strings.HasPrefix(name, optimizerPrefix):
		list = nil
	}
	if len(list) == 0 || e.Shape[0] != elements(whole(list)) { // others, or none, or a mistake that is found later
		x := tensor.FromBytes(s, typ, e.Data, e.Shape...)
		return x, x.Err()
	}
	var parts []*tensor.Tensor
	for i, w := range whole(list) {
		one, err := list[i].cut(ctx, s, typ, e.Data[w.First*typ.Size():][:w.Len()*typ.Size()])
		if err != nil {
			return nil, err
		}
		parts = append(parts, one.Flatten())
	}
	return together(s, typ, parts), nil
}

// Load reads what Save has written, also the model of a checkpoint. All parameters and statistics have to be
// there, with their shapes, and a file that says which layers it is of has to be of the model's: others with
// equal shapes would compute something else. Otherwise the error matches [ErrData], and the model is as it was. In a
// group each member reads the file, and keeps its parts of parameters that members divide, however many there are.
func (m *Model) Load(ctx context.Context, path string) error {
	work := m.scope.Scope()
	defer work.Close()
	ts, metadata, err := m.open(ctx, work, path)
	if err != nil {
		return fmt.Errorf("nn: load: %w", err)
	}
	var a about
	if text := metadata[metadataKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return fmt.Errorf("%w: %s: what it says of its network: %w", ErrData, path, err)
		}
	}
	if layers := m.about().Network; a.Network != nil && !slices.Equal(a.Network, layers) {
		return fmt.Errorf("%w: %s is of the network %q, and not of %q", ErrData, path, a.Network, layers)
	}
	maps.DeleteFunc(ts, func(name string, _ *tensor.Tensor) bool { return strings.HasPrefix(name, TrainingPrefix) })
	for _, v := range slices.Concat(m.params, m.states) {
		if ts[v.Name] == nil {
			return fmt.Errorf("%w: %s has no %q", ErrData, path, v.Name)
		}
	}
	if err := m.SetValues(ctx, ts); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// TrainingPrefix begins the names of a checkpoint's tensors that are not the model's: the states of the
// optimizer, counters, the best values.
const TrainingPrefix = "training/"

// Names of tensors behind it.
const (
	optimizerPrefix = "optimizer."
	residualName    = "residual"

	bestParams = "best.params"
	bestStates = "best.states"
)

// same returns the settings that a training keeps when it goes on.
func (t *Trainer) same() []string {
	c := t.config
	list := []string{fmt.Sprint("batch size: ", c.BatchSize), fmt.Sprint("accumulate: ", c.Accumulate),
		fmt.Sprint("loss: ", c.Loss), fmt.Sprint("optimizer: ", c.Optimizer),
		fmt.Sprint("learning rate: ", c.LearningRate), fmt.Sprint("schedule: ", c.Schedule),
		fmt.Sprint("clip norm: ", c.ClipNorm), fmt.Sprint("clip value: ", c.ClipValue),
		fmt.Sprint("l1: ", c.L1), fmt.Sprint("l2: ", c.L2), fmt.Sprint("weight decay: ", c.WeightDecay),
		fmt.Sprint("decoupled weight decay: ", c.DecoupledWeightDecay),
		fmt.Sprint("precision: ", c.MixedPrecision), fmt.Sprint("split: ", *c.Split), fmt.Sprint("shuffle: ", !c.InOrder),
		fmt.Sprint("seed: ", c.Seed), fmt.Sprint("metrics: ", t.metrics)}
	if c.Compression != nil {
		list = append(list, fmt.Sprint("compression: ", or(c.Compression.Ratio, usualRatio)))
	}
	return list
}

// Save writes a checkpoint, as a whole or not at all: the model, the states of the optimizer, the best values, the
// sums of the epoch under way, the position and the history. It may be called between two calls of Fit, and in
// OnEpoch. In a group rank 0 writes, and the others do nothing, except that they send their parts of parameters where
// members divide them, and their residuals with [Config.Compression]: then all members call it.
func (t *Trainer) Save(ctx context.Context, path string) error {
	if t.vars == nil {
		return fmt.Errorf("%w: nothing to save before the first Fit", ErrConfig)
	}
	if !t.alone() && !t.SavesTogether() {
		return nil
	}
	list, err := t.model.entries(ctx, t.vars[atParams], t.vars[atStates])
	if err != nil {
		return err
	}
	add := func(name string, of []Param, row *tensor.Tensor) error {
		data, err := contents(ctx, t.scope, of, row)
		if err == nil {
			list = append(list, entry(TrainingPrefix+name, row.Type(), data, len(data)/row.Type().Size()))
		}
		return err
	}
	for i, name := range t.names {
		switch {
		case i < atCount: // which are the model's
		case i == atResidual && t.SavesTogether() && t.sent() > 0:
			var data []byte
			if data, err = t.residuals(ctx); err == nil {
				list = append(list, entry(TrainingPrefix+name, t.model.typ, data, len(data)/t.model.typ.Size()))
			}
		default:
			err = add(name, t.layout(i), t.vars[i])
		}
		if err != nil {
			return err
		}
	}
	if t.best.params != nil {
		for i, name := range []string{bestParams, bestStates} {
			err := add(name, [][]Param{t.model.params, t.model.states}[i], []*tensor.Tensor{t.best.params, t.best.states}[i])
			if err != nil {
				return err
			}
		}
	}
	if !t.alone() {
		return nil
	}
	a := t.model.about()
	a.Config, a.Position, a.History = t.same(), t.at, t.history
	return write(path, list, a)
}

// SavesTogether reports whether rank 0 needs what others have for a checkpoint, so that all members call
// [Trainer.Save], and none can be written once the group has failed.
func (t *Trainer) SavesTogether() bool { return t.scope.Size() > 1 && (t.model.split || t.sent() > 0) }

// Resume reads a checkpoint of the same network and configuration, of which Epochs, Patience, MinDelta,
// MaxTime, Checkpoint, CheckpointEvery, Log, Progress and OnEpoch may differ. Fit then goes on from it, with
// the same data, as if it had not been interrupted: with the same bytes on the same device. Where the
// checkpoint has no best values, since it was made without Patience, the best ones with Patience are those from
// here on. If Resume fails, the trainer is as it was.
func (t *Trainer) Resume(ctx context.Context, path string) (err error) {
	work := t.scope.Scope()
	defer work.Close()
	ts, metadata, err := t.model.open(ctx, work, path)
	if err != nil {
		return fmt.Errorf("nn: resume: %w", err)
	}
	a, err := parseAbout(path, metadata)
	if err != nil {
		return err
	}
	for _, pair := range [][2][]string{{a.Network, t.model.about().Network}, {a.Config, t.same()}} {
		if len(pair[0]) != len(pair[1]) {
			return fmt.Errorf("%w: %s is of another network or training", ErrConfig, path)
		}
		for i, want := range pair[1] {
			if pair[0][i] != want {
				return fmt.Errorf("%w: %s is of another training: %q instead of %q", ErrConfig, path, pair[0][i], want)
			}
		}
	}
	for _, m := range t.metrics {
		if h := &a.History; len(h.TrainMetrics[m.String()]) != h.Epochs() || len(h.ValMetrics[m.String()]) != len(h.ValLoss) {
			return fmt.Errorf("%w: %s contradicts itself: it has not all values of %v", ErrData, path, m)
		}
	}
	best := ts[TrainingPrefix+bestParams]
	if !t.isBest(best, ts[TrainingPrefix+bestStates]) {
		return fmt.Errorf("%w: %s has other best values than the network takes", ErrData, path)
	}
	from := t.scope.Scope()
	defer func() {
		if err != nil {
			from.Close()
		}
	}()
	loaded := map[string]*tensor.Tensor{}
	for name, x := range ts {
		if name, ok := strings.CutPrefix(name, TrainingPrefix); ok {
			if name == residualName {
				x = t.residual(x)
			}
			if loaded[name], err = copyTo(ctx, from, x); err != nil { // the file's memory ends here
				return err
			}
		}
	}
	if err := t.model.Load(ctx, path); err != nil {
		return err
	}
	t.best.close()
	t.own.close()
	if t.from != nil {
		t.from.Close()
	}
	t.own, t.from = values{}, from
	t.best = values{params: loaded[bestParams], states: loaded[bestStates]}
	t.vars, t.loaded, t.at, t.history = nil, loaded, a.Position, a.History
	if best == nil && *t.config.Patience > 0 {
		t.history.BestEpoch, t.history.BestValLoss, t.at.Bad = -1, 0, 0
	}
	if t.history.Epochs() < t.config.Epochs && (*t.config.Patience == 0 || *t.config.Patience > t.at.Bad) {
		t.history.Stopped = ""
	}
	return nil
}

// consistent reports whether the position and the history belong together.
func (a *about) consistent() bool {
	at, h := a.Position, &a.History
	n, v := h.Epochs(), len(h.ValLoss)
	ok := at.Epoch == n && at.Batch >= 0 && at.Steps >= 0 && at.Bad >= 0 && v <= n && len(h.LearningRate) == n &&
		len(h.EpochTimes) == n && len(h.Skipped) == n && h.BestEpoch >= -1 && h.BestEpoch < n
	for _, list := range h.TrainMetrics {
		ok = ok && len(list) == n
	}
	for _, list := range h.ValMetrics {
		ok = ok && len(list) == v
	}
	return ok
}

// isBest reports whether tensors may be the best values: both of the model's, or none.
func (t *Trainer) isBest(params, states *tensor.Tensor) bool {
	if params == nil || states == nil {
		return params == states
	}
	for i, x := range []*tensor.Tensor{params, states} {
		list := [][]Param{t.model.params, t.model.states}[i]
		if x.Type() != t.model.typ || x.Rank() != 1 || x.Len() != elements(list) {
			return false
		}
	}
	return true
}
