// Peers measures the cpu backend beside what a program would use instead, in one
// process and call by call in turn, so that whatever else the machine does hits both.
// It prints the median of each and of the ratios, with their quartiles.
//
//	go run ./tests/peers                  # everything
//	go run ./tests/peers gemm odd         # some of it
//	CONCORD_CPU_KERNELS=avx2 go run ./tests/peers gemm
//	CONCORD_CPU_THREADS=1 go run ./tests/peers busy gemm
//
// "busy" is for a machine that others use: it measures the processor's time instead
// of the clock's, which says something with one thread only.
//
// OpenBLAS 0.3.21 does not know newer processors and falls back to slow kernels:
// OPENBLAS_CORETYPE=SKYLAKEX is set where the processor has AVX-512 unless the
// environment has a value, and the name of the kernels it chose is printed.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
)

// suites are what can be named on the command line.
var suites = []struct {
	name string
	run  func(b *bench) error
}{
	{"gemm", (*bench).squares},
	{"odd", (*bench).odd},
	{"stream", (*bench).streams},
	{"l2", (*bench).distances},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// busy makes sample measure the time of the process.
var busy bool

func run(names []string) error {
	if at := slices.Index(names, "busy"); at >= 0 {
		busy, names = true, slices.Delete(names, at, at+1)
	}
	ctx := context.Background()
	s, err := runtime.New(runtime.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := s.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	b := &bench{device: d.Driver(), threads: goruntime.GOMAXPROCS(0)}
	if n := s.Config().CPUThreads; n > 0 {
		b.threads = n
	}
	if strings.Contains(d.Info().Arch, "avx512f") && os.Getenv("OPENBLAS_CORETYPE") == "" {
		os.Setenv("OPENBLAS_CORETYPE", "SKYLAKEX")
	}
	core, err := openBLAS("libopenblas.so.0", b.threads)
	if err != nil {
		fmt.Println("no peer (apt-get install libopenblas0-pthread):", err)
	} else {
		b.blas = true
		fmt.Printf("OpenBLAS with its kernels for %s, %d threads\n", core, b.threads)
	}
	fmt.Println(d.Info().Name)
	for _, suite := range suites {
		if len(names) > 0 && !slices.Contains(names, suite.name) {
			continue
		}
		if err := suite.run(b); err != nil {
			return fmt.Errorf("%s: %w", suite.name, err)
		}
	}
	return nil
}

// sample is the time of one call, of as many in a row as are needed to be seen.
func sample(n int, f func() error) (float64, error) {
	start, used := time.Now(), cpuTime()
	for range n {
		if err := f(); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	if busy {
		took = cpuTime() - used
	}
	return float64(took.Nanoseconds()) / float64(n), nil
}

// compared is the result of measuring two functions in turn: nanoseconds of each,
// and how often the first is as fast as the second.
type compared struct{ ours, theirs, ratio, low, high float64 }

// inTurn measures until budget is over, and at least five times. theirs may be nil.
func inTurn(budget time.Duration, ours, theirs func() error) (c compared, err error) {
	if _, err := sample(1, ours); err != nil { // it warms up
		return c, err
	}
	once, err := sample(1, ours)
	if err != nil {
		return c, err
	}
	n := max(1, int(200e3/max(once, 50)))
	var mine, other, ratios []float64
	for start := time.Now(); len(mine) < 5 || time.Since(start) < budget; {
		a, err := sample(n, ours)
		if err != nil {
			return c, err
		}
		mine = append(mine, a)
		if theirs == nil {
			continue
		}
		b, err := sample(n, theirs)
		if err != nil {
			return c, err
		}
		other, ratios = append(other, b), append(ratios, b/a)
	}
	c.ours, c.theirs = quantile(mine, 0.5), quantile(other, 0.5)
	c.low, c.ratio, c.high = quantile(ratios, 0.25), quantile(ratios, 0.5), quantile(ratios, 0.75)
	return c, nil
}

func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Clone(x)
	slices.Sort(x)
	return x[int(q*float64(len(x)-1)+0.5)]
}
