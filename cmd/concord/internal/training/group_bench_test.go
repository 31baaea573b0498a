package training

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

// BenchmarkTogether trains the MLP on 10,000 images with two processes of one thread, with two members of one process
// of two threads, and, in turn with them, with one process of two threads alone. Its metrics are their rates beside
// that one's, medians of the rounds; of a round each is the median epoch, the first excepted, which compiles.
func BenchmarkTogether(b *testing.B) {
	launcher, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		b.Skip("Open MPI's mpirun is not here (Debian: openmpi-bin)")
	}
	ways := []struct {
		name, threads string
		launched      []string
		flags         []string
	}{
		{"one", "2", nil, nil},
		{"processes/one", "1", []string{launcher, "--allow-run-as-root", "--oversubscribe", "-np", "2"}, []string{"--mpi"}},
		{"members/one", "2", nil, []string{"--members", "2"}},
	}
	for _, batch := range []string{"1024", "128"} {
		b.Run(batch, func(b *testing.B) {
			times := make([][]float64, len(ways))
			for range b.N {
				for i, way := range ways {
					p := apptest.Process(slices.Concat([]string{"train", "--json", "--device", "cpu:0", "--epochs", "7",
						"--batch", batch}, way.flags)...)
					args := slices.Concat(way.launched, p.Args)
					cmd := exec.CommandContext(b.Context(), args[0], args[1:]...)
					cmd.Env = append(slices.Clone(p.Env), "TMPDIR=/tmp", "CONCORD_CPU_THREADS="+way.threads)
					out, err := cmd.Output()
					require.NoError(b, err, "%s", out)
					times[i] = append(times[i], epoch(b, string(out)))
				}
			}
			b.ReportMetric(middle(times[0])/1e6, "ms/epoch")
			for i, way := range ways[1:] {
				ratios := make([]float64, b.N)
				for round := range ratios {
					ratios[round] = times[0][round] / times[i+1][round]
				}
				b.Logf("%s with batches of %s: %.2f", way.name, batch, ratios)
				b.ReportMetric(middle(ratios), way.name)
			}
			b.ReportMetric(0, "ns/op") // which would be of all runs together
		})
	}
}

// epoch returns the median time of an epoch in nanoseconds, from the document of train.
func epoch(b *testing.B, document string) float64 {
	var d struct {
		History struct{ EpochTimes []float64 }
	}
	require.NoError(b, json.Unmarshal([]byte(document), &d))
	return middle(d.History.EpochTimes[1:])
}

// middle returns the median.
func middle(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
