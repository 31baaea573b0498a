// Command concord lists devices, compiles and runs portable kernels on them, and
// checks that they all compute the same: the backends concord.
//
// Exit status: 0 success, 1 the work failed or its output could not be written, 2 wrong
// usage, 141 the reader of standard output ended first (as after SIGPIPE). With --json
// a command prints exactly one JSON document to standard output and nothing else; what
// kernels and drivers print goes to standard error.
package main

import (
	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/bench"
	"github.com/concord-compute/concord/cmd/concord/internal/checks"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/explain"
	"github.com/concord-compute/concord/cmd/concord/internal/program"
	"github.com/concord-compute/concord/cmd/concord/internal/search"
	"github.com/concord-compute/concord/cmd/concord/internal/tensors"
	"github.com/concord-compute/concord/cmd/concord/internal/trace"
	"github.com/concord-compute/concord/cmd/concord/internal/training"
	"github.com/concord-compute/concord/cmd/concord/internal/tuning"
	_ "github.com/concord-compute/concord/runtime/all" // every backend of this build
	"github.com/concord-compute/concord/runtime/tune"
)

// commands are all commands, in the order of the help. Each package below exports its own.
var commands = []app.Command{
	bench.Command,
	devices.Cache,
	program.Compile,
	checks.Demo,
	devices.List,
	devices.Doctor,
	training.Eval,
	explain.Command,
	tensors.GGUF,
	program.Kernels,
	program.Occupancy,
	checks.Parity,
	training.Plot,
	training.Predict,
	tensors.Quantize,
	program.Run,
	search.Command,
	tensors.Tensor,
	devices.Top,
	trace.Command,
	training.Train,
	program.Translate,
	tuning.Command,
	checks.Verify,
}

func main() {
	tune.FirstUse()
	app.Main(commands...)
}
