//go:build unix

package mpi

// Processes that train a network together, beside one device that trains it alone.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// training is one that processes of a role make, or one device. Its checkpoint is the result.
type training struct {
	CNN, Double             bool // or an MLP, and F32
	Examples, Epochs, Batch int
	Validated               float64 // the part of the examples that is not learned from
	Momentum                bool    // or Adam
	Checkpoint              string
	Resume                  bool
	Within                  float64 // of the parameters of one device
}

// rows are the trainings of issue 37 for each network: in F64 for 3 epochs, in F32 for 20 steps, and for the accuracy
// after 3 epochs.
var rows = []training{
	{Double: true, Examples: 1000, Epochs: 3, Batch: 128, Validated: 0.2, Within: 1e-9},
	{Examples: 20 * 64, Epochs: 1, Batch: 64, Within: 1e-5},
	{CNN: true, Double: true, Examples: 100, Epochs: 3, Batch: 24, Validated: 0.2, Within: 1e-9},
	// of Adam a gradient near 0 that rounds otherwise is a step
	{CNN: true, Examples: 20 * 16, Epochs: 1, Batch: 16, Momentum: true, Within: 1e-5},
	{Examples: 10000, Epochs: 3, Batch: 128, Validated: 0.2, Within: math.MaxFloat64},
	{CNN: true, Examples: 2000, Epochs: 3, Batch: 64, Validated: 0.5, Within: math.MaxFloat64},
}

// fit trains. Each is called where it is not nil.
func (r training) fit(ctx context.Context, s *tensor.Scope, progress func(nn.Progress),
	epoch func(h *nn.History) error) error {
	typ := tensor.F32
	if r.Double {
		typ = tensor.F64
	}
	shape, layers := []int{784}, []nn.Layer{nn.Scale{Factor: 1.0 / 255}}
	if three := []int{3, 3}; r.CNN {
		shape = []int{1, 28, 28}
		layers = append(layers, nn.Conv{Filters: 32, Size: three, Act: nn.ReLU}, nn.Conv{Filters: 64, Size: three,
			Act: nn.ReLU}, nn.MaxPool{Size: []int{2, 2}}, nn.Flatten{}, nn.Dense{Out: 128, Act: nn.ReLU})
	} else {
		layers = append(layers, nn.Dense{Out: 512, Act: nn.ReLU}, nn.Dense{Out: 256, Act: nn.ReLU})
	}
	m, err := nn.Build(ctx, s, 1, nn.Spec{Type: typ, Shape: shape}, append(layers, nn.Dense{Out: 10})...)
	if err != nil {
		return err
	}
	images, err := mnist.Images()
	if err != nil {
		return err
	}
	labels, err := mnist.Labels()
	if err != nil {
		return err
	}
	c := nn.Config{Loss: nn.CrossEntropy{}, Seed: 1, Epochs: r.Epochs, BatchSize: r.Batch, Split: &r.Validated,
		Patience: new(0), Checkpoint: r.Checkpoint, Progress: progress, OnEpoch: epoch}
	if r.Momentum {
		c.Optimizer, c.LearningRate = nn.Momentum{}, 0.01
	}
	t, err := nn.NewTrainer(m, c)
	if err == nil && r.Resume {
		err = t.Resume(ctx, r.Checkpoint)
	}
	if err != nil {
		return err
	}
	x := tensor.From(s, images.Pixels[:r.Examples*784], append([]int{r.Examples}, shape...)...).Cast(typ)
	_, err = t.Fit(ctx, nn.Data{X: x, Y: tensor.From(s, labels[:r.Examples])})
	return err
}

// job makes this process a member, and gives f its scope.
func job(ctx context.Context, o Options, f func(ctx context.Context, s *tensor.Scope) error) (err error) {
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	o.Cluster.Timeout = 2 * time.Minute // a busy machine, and processes that share it
	g, err := o.Group(ctx, dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	s := tensor.NewMemberScope(g.Members()[0])
	defer func() { err = errors.Join(err, s.Close()) }()
	return f(ctx, s)
}

// trainings are those of the environment.
func trainings() (list []training, err error) {
	return list, json.Unmarshal([]byte(os.Getenv("MPI_TEST_TRAININGS")), &list)
}

func setTrainings(t *testing.T, list ...training) {
	t.Helper()
	text, err := json.Marshal(list)
	require.NoError(t, err)
	t.Setenv("MPI_TEST_TRAININGS", string(text))
}

// train makes one training after the other.
func train(ctx context.Context) error {
	list, err := trainings()
	if err != nil {
		return err
	}
	return job(ctx, Options{}, func(ctx context.Context, s *tensor.Scope) error {
		for _, r := range list {
			work := s.Scope()
			err := r.fit(ctx, work, nil, nil)
			if err = errors.Join(err, work.Close()); err != nil {
				return err
			}
		}
		return nil
	})
}

// dies has one process killed in the middle of an epoch. The others find that in time.
func dies(ctx context.Context) error {
	list, err := trainings()
	if err != nil {
		return err
	}
	at := list[0].Checkpoint + " killed" // has the time of it
	return job(ctx, Options{}, func(ctx context.Context, s *tensor.Scope) error {
		victim := s.Size() / 2
		err := list[0].fit(ctx, s, func(p nn.Progress) {
			if s.Rank() == victim && p.Epoch == 1 && p.Examples < p.Of {
				_ = os.WriteFile(at, []byte(strconv.FormatInt(time.Now().UnixNano(), 10)), 0o644)
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}, nil)
		e, ok := errors.AsType[*cluster.MemberError](err)
		if !ok || e.Rank != victim || !errors.Is(err, runtime.ErrDeviceLost) {
			return fmt.Errorf("instead of that rank %d is lost: %w", victim, err)
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		nanoseconds, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return err
		}
		took := time.Since(time.Unix(0, nanoseconds))
		fmt.Printf("rank %d after %v: %v\n", s.Rank(), took.Round(time.Millisecond), e)
		if took > standardTimeout {
			return fmt.Errorf("it took %v, and has %v", took, standardTimeout)
		}
		return nil
	})
}

// learned is what a checkpoint has: the parameters, and the accuracies of the epochs.
func learned(t *testing.T, path string) (values []float64, accuracy []float64) {
	t.Helper()
	dev, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer dev.Close()
	s := tensor.NewScope(dev)
	defer s.Close()
	ts, _, err := tensor.Load(s, path)
	require.NoError(t, err)
	var names []string
	for name := range ts {
		if !strings.HasPrefix(name, nn.TrainingPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		list, err := tensor.Read[float64](t.Context(), ts[name].Cast(tensor.F64))
		require.NoError(t, err)
		values = append(values, list...)
	}
	h, err := nn.LoadHistory(path)
	require.NoError(t, err)
	return values, h.ValMetrics["accuracy"]
}

// alone trains each of the rows on one device, and returns their checkpoints.
func alone(ctx context.Context, dir string) (paths []string, err error) {
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	for i, r := range chosen() {
		r.Checkpoint = filepath.Join(dir, fmt.Sprint(i))
		s := tensor.NewScope(dev)
		if err := errors.Join(r.fit(ctx, s, nil, nil), s.Close()); err != nil {
			return nil, err
		}
		paths = append(paths, r.Checkpoint)
	}
	return paths, nil
}

// chosen are the rows that are tried: in make test-mpi all but those for the accuracy, for which MPI_FULL has to be 2.
func chosen() []training {
	switch {
	case everything:
		return rows
	case full:
		return rows[:4]
	}
	return rows[1:2]
}

// TestTraining finds parameters of processes that train together that are not those of one device.
func TestTraining(t *testing.T) {
	once := sync.OnceValues(func() ([]string, error) { return alone(t.Context(), t.TempDir()) })
	eachLauncher(t, func(t *testing.T, l launcher) {
		wants, err := once()
		require.NoError(t, err)
		numbers := []int{2}
		switch {
		case everything:
			numbers = []int{2, 4}
		case full && l.name == known[0].name: // each launcher has one of them
			numbers = []int{4}
		}
		for _, n := range numbers {
			list := slices.Clone(chosen())
			for i := range list {
				list[i].Checkpoint = filepath.Join(t.TempDir(), fmt.Sprint("row", i))
			}
			setTrainings(t, list...)
			l.run(t, n, "train")
			for i, r := range list {
				want, accuracies := learned(t, wants[i])
				got, others := learned(t, r.Checkpoint)
				most := distance(t, want, got)
				t.Logf("%d processes, row %d: parameters differ by %.3g, accuracies %v and %v", n, i, most, accuracies, others)
				assert.LessOrEqual(t, most, r.Within, "%d processes, row %d", n, i)
				assert.InDeltaSlice(t, accuracies, others, 0.003, "%d processes, row %d", n, i)
			}
		}
	})
}

// distance is the largest difference of two elements.
func distance(t *testing.T, want, got []float64) (most float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, x := range want {
		most = max(most, math.Abs(got[i]-x))
	}
	return most
}

// onlyFirst skips a test with all launchers but the first, unless everything is tried: with the others TestFate and
// TestNamespaces show when a failure is found, and a training goes on as with the first.
func (l launcher) onlyFirst(t *testing.T) {
	t.Helper()
	if l.name != known[0].name && !everything {
		t.Skip("make test-mpi MPI_FULL=2 runs it")
	}
}

// TestTrainingKilled kills a process in the middle of an epoch. It fails if another one does not learn of that in time,
// or if training does not go on from the last checkpoint to the very bits of a training without a failure.
func TestTrainingKilled(t *testing.T) {
	onlyFull(t)
	eachLauncher(t, func(t *testing.T, l launcher) {
		l.onlyFirst(t)
		dir := t.TempDir()
		r := training{Examples: 33 * 8, Epochs: 3, Batch: 8, Checkpoint: filepath.Join(dir, "killed")}
		setTrainings(t, r)
		t.Log(l.run(t, 4, "train killed", l.goOn...))
		h, err := nn.LoadHistory(r.Checkpoint)
		require.NoError(t, err)
		require.Equal(t, 1, h.Epochs())
		whole := r
		whole.Checkpoint = filepath.Join(dir, "whole")
		r.Resume = true
		setTrainings(t, r, whole)
		l.run(t, 4, "train")
		want, _ := learned(t, whole.Checkpoint)
		got, _ := learned(t, r.Checkpoint)
		assert.Zero(t, distance(t, want, got))
	})
}

// untilCut trains until the network is gone. Its result goes to a file, as that of cut.
func untilCut(ctx context.Context) error {
	const timeout = 5 * time.Second
	list, err := trainings()
	if err != nil {
		return err
	}
	return job(ctx, Options{Timeout: timeout}, func(ctx context.Context, s *tensor.Scope) error {
		var last atomic.Int64 // when a process was last known to be reached
		note := func(nn.Progress) { last.Store(time.Now().UnixNano()) }
		err := list[0].fit(ctx, s, note, func(h *nn.History) error {
			if h.Epochs() == 2 {
				return began(s.Rank())
			}
			return nil
		})
		return told(s.Rank(), judged(err, 1-s.Rank(), time.Since(time.Unix(0, last.Load())), 2*timeout))
	})
}

// TestTrainingCut pulls the cable between two namespaces while they train, and mends it. It fails if one of them does
// not say in time that it cannot reach the other, or if training does not go on from the checkpoint to the very bits of
// a training that was not cut.
func TestTrainingCut(t *testing.T) {
	onlyFull(t)
	eachLauncher(t, func(t *testing.T, l launcher) {
		l.onlyFirst(t)
		n := newNet(t, l)
		r := training{Examples: 64, Epochs: 10000, Batch: 32, Momentum: true, Checkpoint: filepath.Join(n.dir, "cut")}
		setTrainings(t, r)
		n.cut(t, "train cut")
		require.NoError(t, exec.Command("ip", "-n", spaces[0], "link", "set", "cable", "up").Run())
		h, err := nn.LoadHistory(r.Checkpoint)
		require.NoError(t, err)
		whole := r
		r.Resume, r.Epochs = true, h.Epochs()+2
		setTrainings(t, r)
		n.run(t, "train")
		whole.Epochs, whole.Checkpoint = r.Epochs, filepath.Join(n.dir, "whole")
		setTrainings(t, whole)
		l.run(t, 2, "train")
		want, _ := learned(t, whole.Checkpoint)
		got, _ := learned(t, r.Checkpoint)
		t.Logf("%d epochs, of which %d before the cut", r.Epochs, h.Epochs())
		assert.Zero(t, distance(t, want, got))
	})
}
