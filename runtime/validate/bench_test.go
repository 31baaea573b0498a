//go:build unix

package validate

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/nn"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// BenchmarkTraining trains a network of 784, 128 and 10 neurons with and without validation of one in 1,000
// launches, in turn; which comes first in a round changes from round to round. overhead-% is the median of the
// rounds' ratios, and processor-% that of the processor time of all threads, which other programs disturb less.
func BenchmarkTraining(b *testing.B) {
	const images, epochs = 6000, 10
	s, err := runtime.New(runtime.Config{Validate: -1})
	require.NoError(b, err)
	defer s.Close()
	d, err := s.Open(b.Context(), "cpu:0")
	require.NoError(b, err)
	defer d.Close()
	scope := tensor.NewScope(d)
	defer scope.Close()
	x, y := make([]float32, images*784), make([]float32, images*10)
	for i := range x {
		x[i] = float32(i*7919%257) / 257
	}
	for i := range images {
		y[10*i+i%10] = 1
	}
	data := nn.Data{X: tensor.From(scope, x, images, 784), Y: tensor.From(scope, y, images, 10)}
	m, err := nn.Build(b.Context(), scope, 1, nn.Spec{Type: tensor.F32, Shape: []int{784}},
		nn.Dense{Out: 128, Act: nn.ReLU}, nn.Dense{Out: 10})
	require.NoError(b, err)
	train := func() time.Duration {
		t, err := nn.NewTrainer(m, nn.Config{BatchSize: 64, Epochs: epochs, Loss: nn.CrossEntropy{}, Split: new(0.0),
			Patience: new(0)})
		require.NoError(b, err)
		defer t.Close()
		h, err := t.Fit(b.Context(), data)
		require.NoError(b, err)
		total := time.Duration(0)
		for _, e := range h.EpochTimes[1:] {
			total += e
		}
		return total
	}
	v, err := Start(s, Options{})
	require.NoError(b, err)
	defer v.Close()
	train() // uses up what is saved of the share
	v.stop()
	launches := d.Stats().Launches
	var times [2][]time.Duration // off, on
	var ratios, used []float64
	for b.Loop() {
		var processor [2]time.Duration
		for i := range times {
			on := (i + len(ratios)) % 2
			stop := func() {}
			if on == 1 {
				v.mu.Lock()
				v.counted = time.Now() // the share of the time in which it is on
				v.mu.Unlock()
				stop = s.Check(v)
			}
			start := processorTime(b)
			times[on] = append(times[on], train())
			stop()
			v.Wait()
			processor[on] = processorTime(b) - start
		}
		ratios = append(ratios, float64(times[1][len(ratios)])/float64(times[0][len(ratios)]))
		used = append(used, float64(processor[1])/float64(processor[0]))
	}
	b.Log(v)
	perTraining := float64(d.Stats().Launches-launches) / float64(2*len(ratios)*epochs)
	slices.Sort(ratios)
	slices.Sort(used)
	slices.Sort(times[0])
	b.ReportMetric(float64(times[0][len(ratios)/2].Microseconds())/float64(epochs-1)/perTraining, "µs/launch")
	b.ReportMetric(100*(ratios[len(ratios)/2]-1), "overhead-%")
	b.ReportMetric(100*(used[len(used)/2]-1), "processor-%")
	b.ReportMetric(0, "ns/op")
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
