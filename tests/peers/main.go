// Peers compares the cpu backend with alternatives: OpenBLAS in this process, PyTorch and FAISS in
// a process of Python, and hand-written loops. They are called in turn, sample by sample, so that
// other load of the machine affects all of them alike.
//
//	go run ./tests/peers                     # everything
//	go run ./tests/peers --only gemm,l2      # some of it
//	go run ./tests/peers --only stream --json >stream.json
//	go run ./tests/peers --rows 'gemm 1024|conv.*3×3'   # the rows whose suite and name match
//	CONCORD_CPU_KERNELS=avx2 go run ./tests/peers --only gemm
//
// With CONCORD_CPU_KERNELS=avx2 the peers and the loops are held to AVX2, too. Load of other programs
// changes ratios; chrt -r 10 keeps it off.
//
// Each peer runs with its best settings: on as many threads as the backend, with its memory in
// large pages, and with the setting (OPENBLAS_CORETYPE, ATEN_CPU_CAPABILITY) with which it is
// fastest on this machine. The settings that the processor supports are tried first, and the chosen
// one is printed with each result. A peer that is missing or crashes is named, and the others are
// measured. Pictures and tables go to build/peers. --ratios docs/rates.csv draws README.md's picture.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
)

// suites are the measurements that --only can name.
var suites = []struct {
	name, doc string
	run       func(b *bench) error
}{
	{"gemm", "square products, f32 and f64, beside OpenBLAS", (*bench).squares},
	{"batch", "64 products of 64, a product with bias and relu, and one beside gonum", (*bench).batches},
	{"odd", "products of shapes that blocks do not fit, geometric mean and quartiles over them, beside OpenBLAS",
		(*bench).odd},
	{"few", "products of few rows with weights of 32 and 16 bits, beside PyTorch and reading the weights",
		(*bench).fewRows},
	{"stream", "64 M floats, beside loops by hand and PyTorch", (*bench).streams},
	{"softmax", "rows of 1024, beside PyTorch", (*bench).softmax},
	{"memory", "the rest of what memory bounds, beside loops by hand", (*bench).memory},
	{"l2", "1 and 16 queries for the nearest of a million vectors of 128, beside FAISS and reading them",
		(*bench).distances},
	{"l2many", "256 queries, likewise", (*bench).manyDistances},
	{"nearest", "1 and 4 queries for the nearest of a million vectors of 128 in one launch, beside reading them",
		(*bench).searches},
	{"flat", "exact searches of package ann for the 10 nearest, beside FAISS, the kernel alone, and floats",
		(*bench).flat},
	{"hnsw", "graphs of package ann at a recall of 0.99, beside hnswlib", (*bench).graph},
	{"ivf", "lists of package ann at a recall of 0.95, beside FAISS", (*bench).lists},
	{"pq", "codes of vectors in lists of package ann, beside FAISS", (*bench).codes},
	{"user", "kernels of a user by the host's compiler, beside the built-in and loops by hand", (*bench).user},
	{"tensor", "compiled functions of tensors, beside PyTorch", (*bench).tensors},
	{"networks", "training steps of package nn, beside PyTorch", (*bench).networks},
	{"conv", "convolutions, most of 8×64×56×56 by 3×3, beside PyTorch's oneDNN", (*bench).convolution},
}

// bench is one run.
type bench struct {
	ctx         context.Context
	whole       *runtime.Device
	device      driver.Device  // the device of session whole
	features    features       // of the processor that are used
	which       *regexp.Regexp // of the rows to measure; nil means all
	threads     int
	blas        bool          // OpenBLAS is open
	core        string        // the kernels that OpenBLAS chose
	noBLAS      string        // why it is not open
	budget      time.Duration // for one row
	interpreter string        // of Python
	pythons     map[string]*python
	suite       string
	rows        []row
	limits      limits
	quiet       bool // no text is printed
}

func main() {
	only := flag.String("only", "", "comma-separated `suites`; all when absent")
	rows := flag.String("rows", "", "a regular `expression`; only rows that match it as \"suite name\" are measured")
	asJSON := flag.Bool("json", false, "print one JSON document, and progress to standard error")
	budget := flag.Duration("time", 3*time.Second, "time for each row")
	out := flag.String("out", "build/peers", "`directory` for pictures and tables")
	picture := flag.String("ratios", "", "measure nothing; draw a table of recorded ratios (.csv) beside it (.svg)")
	probe := flag.Int("probe-openblas", 0, "print the kernels and rate of OpenBLAS on so many `threads`; for this "+
		"program itself")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: go run ./tests/peers [flags]\n\nSuites:\n")
		for _, s := range suites {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-8s %s\n", s.name, s.doc)
		}
		fmt.Fprint(flag.CommandLine.Output(), "\nFlags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *probe > 0:
		err = probeOpenBLAS(*probe)
	case flag.NArg() > 0:
		err = fmt.Errorf("%q is not a flag; see --help", flag.Arg(0))
	case *picture != "":
		var ratios []ratio
		if ratios, err = readRatios(*picture); err == nil {
			err = drawRatios(ratios, strings.TrimSuffix(*picture, ".csv")+".svg")
		}
	default:
		err = run(ctx, *only, *rows, *out, *asJSON, *budget)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, rows, out string, asJSON bool, budget time.Duration) error {
	var names []string
	if only != "" {
		names = strings.Split(only, ",")
	}
	for _, name := range names {
		if !slices.ContainsFunc(suites, func(s struct {
			name, doc string
			run       func(b *bench) error
		}) bool {
			return s.name == name
		}) {
			return fmt.Errorf("no suite %q; see --help", name)
		}
	}
	which, err := regexp.Compile(rows)
	if err != nil {
		return fmt.Errorf("--rows: %w", err)
	}
	s, err := runtime.New(runtime.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	d, err := s.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	b := &bench{ctx: ctx, whole: d, device: d.Driver(), features: features(d.Info().Arch).heldTo(s.Config().CPUKernels),
		which:   which,
		threads: goruntime.GOMAXPROCS(0), budget: budget,
		quiet: asJSON, interpreter: interpreter, pythons: map[string]*python{}}
	defer b.stopPythons()
	if n := s.Config().CPUThreads; n > 0 {
		b.threads = n
	}
	b.say("%s, %d threads", d.Info().Name, b.threads)
	if err := b.openPeers(); err != nil {
		return err
	}
	if err := b.measureLimits(); err != nil {
		return err
	}
	var errs []error
	for _, suite := range suites {
		if len(names) > 0 && !slices.Contains(names, suite.name) {
			continue
		}
		b.suite = suite.name
		if err := suite.run(b); err != nil { // the results so far are kept
			errs = append(errs, fmt.Errorf("%s: %w", suite.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(errs, b.finish(out, d.Info().Name, asJSON))...)
}

// wanted reports whether a row is to be measured.
func (b *bench) wanted(what string) bool {
	return b.which == nil || b.which.MatchString(b.suite+" "+what)
}

// say prints a line of text unless the run is quiet.
func (b *bench) say(format string, args ...any) {
	to := os.Stdout
	if b.quiet {
		to = os.Stderr
	}
	fmt.Fprintf(to, format+"\n", args...)
}
