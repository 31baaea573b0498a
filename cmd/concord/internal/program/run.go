package program

// concord run: any portable kernel, with arrays from files and to files.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/npy"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// runFlags are the flags of run as text.
type runFlags struct {
	program programFlags
	device  string
	kernel  string
	global  string
	local   string
	args    []string
	outs    []string
	timeout time.Duration
	repeat  bool
}

// job is a run whose flags were parsed.
type job struct {
	flags *runFlags
	file  string
	grid  runtime.Grid
	args  []argument
}

// ran is the document of run.
type ran struct {
	Device         string   `json:"device"`
	Kernel         string   `json:"kernel"`
	Text           string   `json:"text"` // the file that was compiled: x.cl, or x.cu, x.hip or x.metal
	MS             float64  `json:"ms"`
	Implementation string   `json:"implementation,omitempty"`
	Built          string   `json:"built"` // compiled, disk or memory
	BuildMS        float64  `json:"build_ms"`
	Outputs        []output `json:"outputs"`
}

// output is an argument that was written to a file.
type output struct {
	Arg   int    `json:"arg"`
	File  string `json:"file"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

// Run returns the command run.
func Run(a *app.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run {--global X[,Y[,Z]] [--arg A]... | --repeat} FILE",
		Short: "Run a portable kernel with arrays from .npy files",
		Long: `Run compiles FILE, a program in OpenCL C, launches one of its kernels once and waits.

FILE may also be x.cu, x.hip or x.metal, with the kernels declared in x.cl (see concord compile
--help). Devices of other vendors run what x.cl defines.

Arguments, one --arg for each parameter in order:
  @file.npy            a buffer with the file's array and element type
  zeros:f32:32,32      a buffer of zeros of that shape
  local:f32:256        local memory for 256 elements
  f32:1.5  i32:7       a value; types f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64
  f32:1,2,3,4          a vector
bfloat16 is stored as 16-bit unsigned integers, in files and in parameters (ushort).

--global counts items, as OpenCL does: each dimension a multiple of --local.
A kernel that writes outside its buffers can crash a driver: except with --device cpu:N it
runs in a separate process, which ends with this one. With --timeout it always does, and
the process is ended in time: an endless kernel cannot be stopped otherwise. printf goes
to standard error.

With --repeat FILE is one that package runtime/validate wrote of a launch with a wrong result
(see CONCORD_VALIDATE): the launch is repeated with its inputs, on its device or on --device,
and judged as it was judged then. The command fails if the result is wrong.

--out replaces a file as a whole or not at all, and keeps its permissions; links stay. A
read-only file, even for the superuser, or a file in a directory that permits no new file
is refused. Pipes and devices are written to directly: with /dev/stdout, or -, the array
goes to standard output, and text to standard error.`,
		Example: `  concord run --device cpu:0 --kernel saxpy --global 1024 --arg f32:2 --arg @x.npy \
      --arg @y.npy --arg u32:1000 --out 2=result.npy saxpy.cl
  concord run --global 64 --local 8 --arg f32:2 --arg zeros:f32:64 --arg zeros:f32:64 \
      --arg u32:64 --out 2=result.npy --timeout 5s --json saxpy.cl`,
		Args: cobra.ExactArgs(1),
	}
	f.add(cmd)
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		if f.repeat {
			return f.repeatFile(ctx, a, cmd, args[0])
		}
		j, err := f.job(args[0])
		if err != nil {
			return err
		}
		for _, out := range j.outs() {
			if files.SameFile(out, args[0]) {
				return app.Usagef("--out %s: it is the program's file, too", out)
			}
		}
		if err := a.Claim(files.Array, j.outs()...); err != nil {
			return err
		}
		switch {
		case app.IsChild():
			return app.WithLimit(ctx, f.timeout, func(ctx context.Context) error { return run(ctx, a, j) })
		case f.timeout > 0 || !onCPU(j.flags.device):
			return runInChild(ctx, a, j)
		}
		return run(ctx, a, j)
	})
}

// add declares the flags.
func (f *runFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.device, "device", "auto", "`device` to run on")
	fs.StringVar(&f.kernel, "kernel", "", "`name` of the kernel; not needed if the file has one")
	fs.StringVar(&f.global, "global", "", "items: `X[,Y[,Z]]`")
	fs.StringVar(&f.local, "local", "", "items of a group: `X[,Y[,Z]]`; chosen when absent")
	fs.StringArrayVar(&f.args, "arg", nil, "`argument` of the kernel (repeat, in order)")
	fs.StringArrayVar(&f.outs, "out", nil, "write argument I to a file after the run: `I=F.npy` (repeat)")
	fs.DurationVar(&f.timeout, "timeout", 0, "end the run after this time, such as 5s")
	fs.BoolVar(&f.repeat, "repeat", false, "FILE is of a launch with a wrong result: repeat it")
	f.program.add(cmd)
}

// run runs a job in this process and prints the result.
func run(ctx context.Context, a *app.App, j *job) error {
	r, err := runJob(ctx, a, j)
	if err != nil {
		return err
	}
	return a.Show(r, func() {
		writeRan(a, r)
		if r.Text != j.file {
			a.Printf("text: %s (%s is not for this device)\n", r.Text, j.file)
		}
	})
}

func writeRan(a *app.App, r *ran) {
	a.Printf("%s on %s: %s (%s, program: %s in %s)\n", r.Kernel, r.Device,
		ui.DurationText(ui.Duration(r.MS)), r.Implementation, r.Built, ui.DurationText(ui.Duration(r.BuildMS)))
	for _, o := range r.Outputs {
		a.Printf("argument %d: %s, %s of shape %v\n", o.Arg, o.File, o.DType, o.Shape)
	}
}

// job checks everything that the command line alone shows.
func (f *runFlags) job(file string) (*job, error) {
	j := &job{flags: f, file: file}
	if f.global == "" {
		return nil, app.Usagef("--global is required")
	}
	if _, err := f.program.definitions(); err != nil {
		return nil, err
	}
	if err := app.CheckDevice(f.device); err != nil {
		return nil, err
	}
	if f.timeout < 0 {
		return nil, app.Usagef("--timeout %v: negative", f.timeout)
	}
	var err error
	if j.grid.Items, err = parseGrid(f.global); err != nil {
		return nil, app.Usagef("--global %s: %w", f.global, err)
	}
	if f.local != "" {
		if j.grid.Group, err = parseGrid(f.local); err != nil {
			return nil, app.Usagef("--local %s: %w", f.local, err)
		}
	}
	for i, text := range f.args {
		arg, err := parseArgument(text)
		if err != nil {
			return nil, app.Usagef("argument %d (--arg %s): %w", i, text, err)
		}
		j.args = append(j.args, arg)
	}
	for _, text := range f.outs {
		if err := j.addOut(text); err != nil {
			return nil, app.Usagef("--out %s: %w", text, err)
		}
	}
	return j, nil
}

// parseGrid reads "X[,Y[,Z]]".
func parseGrid(text string) (grid [3]int, err error) {
	parts := strings.Split(text, ",")
	if len(parts) > 3 {
		return grid, fmt.Errorf("%d dimensions, at most 3", len(parts))
	}
	for i, part := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n <= 0 {
			return grid, fmt.Errorf("%q is not a positive number", part)
		}
		grid[i] = n
	}
	return grid, nil
}

func (j *job) addOut(text string) error {
	index, file, ok := strings.Cut(text, "=")
	i, err := strconv.Atoi(index)
	switch {
	case !ok || err != nil || file == "":
		return errors.New("not I=F.npy, where I counts arguments from 0")
	case i < 0 || i >= len(j.args):
		return fmt.Errorf("there are %d arguments, counted from 0", len(j.args))
	case !j.args[i].array:
		return fmt.Errorf("argument %d (%s) is no buffer", i, j.args[i].text)
	}
	for _, other := range j.outs() {
		if files.SameFile(file, other) {
			return fmt.Errorf("it is the file of --out %s, too", other)
		}
	}
	j.args[i].out = append(j.args[i].out, file)
	return nil
}

// outs lists the files that will be written.
func (j *job) outs() (list []string) {
	for _, arg := range j.args {
		list = append(list, arg.out...)
	}
	return list
}

// runJob runs a job in this process.
func runJob(ctx context.Context, a *app.App, j *job) (*ran, error) {
	s, err := a.Open(runtime.Config{})
	if err != nil {
		return nil, err
	}
	dev, err := s.Open(ctx, j.flags.device)
	if err != nil {
		return nil, fmt.Errorf("--device %s: %w", j.flags.device, err)
	}
	unit, err := j.flags.program.parse(ctx, j.file, dev.Features())
	if err != nil {
		return nil, err
	}
	decl, err := chooseKernel(unit, j.flags.kernel)
	if err != nil {
		return nil, err
	}
	if err := j.readArguments(ctx, decl); err != nil {
		return nil, err
	}
	prog, err := dev.Program(ctx, unit)
	if err != nil {
		return nil, err
	}
	k, err := prog.Kernel(decl.Name)
	if err != nil {
		return nil, err
	}
	args, buffers, err := j.upload(ctx, dev, decl)
	if err != nil {
		return nil, err
	}
	rec, err := dev.Stream().Run(ctx, k, j.grid, args...)
	if err != nil {
		return nil, err
	}
	built := prog.Built()
	r := &ran{Device: dev.String(), Kernel: decl.Name,
		Text: unit.NameFor(nativeTargets[strings.TrimPrefix(dev.Info().Backend, "sim-")]),
		MS:   float64(rec.DeviceTimeNs) / 1e6, Implementation: rec.Implementation,
		Built: built.From, BuildMS: ui.Milliseconds(built.Elapsed), Outputs: []output{}}
	return r, download(ctx, a, j, dev, buffers, r)
}

// chooseKernel returns the kernel to run.
func chooseKernel(unit *source.Unit, name string) (*source.Kernel, error) {
	list := unit.Kernels()
	var names []string
	for _, k := range list {
		names = append(names, k.Name)
	}
	switch {
	case name == "" && len(list) > 1:
		return nil, app.Usagef("%s has %d kernels: say --kernel with one of %s", unit.Name(), len(list),
			strings.Join(names, ", "))
	case name == "":
		return &list[0], nil
	}
	k, ok := unit.Kernel(name)
	if !ok {
		return nil, fmt.Errorf("--kernel %s: %s has %s: %w", name, unit.Name(), strings.Join(names, ", "),
			driver.ErrNoKernel)
	}
	return k, nil
}

// readArguments reads the files and compares everything with the parameters,
// before anything is compiled.
func (j *job) readArguments(ctx context.Context, decl *source.Kernel) error {
	if len(j.args) != len(decl.Params) {
		return fmt.Errorf("%d arguments for the %d parameters of %s: %w", len(j.args), len(decl.Params), signature(decl),
			runtime.ErrInvalidArgument)
	}
	for i := range j.args {
		if err := j.args[i].read(ctx); err != nil {
			return fmt.Errorf("argument %d (%s): %w", i, j.args[i].text, err)
		}
	}
	for i, p := range decl.Params {
		if err := j.args[i].check(p); err != nil {
			return fmt.Errorf("argument %d (%s) for %s %s: %w: %w", i, j.args[i].text, p.Decl, p.Name, err,
				runtime.ErrInvalidArgument)
		}
	}
	return nil
}

// signature returns a text such as "saxpy(float a, global const float * x)".
func signature(k *source.Kernel) string {
	params := make([]string, len(k.Params))
	for i, p := range k.Params {
		params[i] = p.Decl + " " + p.Name
	}
	return k.Name + "(" + strings.Join(params, ", ") + ")"
}

// upload makes the arguments of the launch. buffers has one for every array.
func (j *job) upload(ctx context.Context, dev *runtime.Device,
	decl *source.Kernel) (args []any, buffers []*runtime.Buffer, err error) {
	buffers = make([]*runtime.Buffer, len(j.args))
	for i := range j.args {
		arg := &j.args[i]
		if !arg.array {
			args = append(args, arg.launch(decl.Params[i]))
			continue
		}
		b, err := uploadArray(ctx, dev, arg)
		if err != nil {
			return nil, nil, fmt.Errorf("argument %d (%s): %w", i, arg.text, err)
		}
		buffers[i] = b
		args = append(args, b)
	}
	return args, buffers, nil
}

// uploadArray makes a buffer. Buffers cannot be empty: an array without elements gets one that is
// never read.
func uploadArray(ctx context.Context, dev *runtime.Device, arg *argument) (*runtime.Buffer, error) {
	b, err := dev.Alloc(arg.typ, max(elements(arg.shape), 1))
	if err != nil {
		return nil, err
	}
	if arg.file == "" {
		return b, dev.Stream().Fill(b, make([]byte, arg.typ.Size()))
	}
	return b, dev.Stream().Write(ctx, b, 0, arg.data)
}

// download writes the files of --out.
func download(ctx context.Context, a *app.App, j *job, dev *runtime.Device, buffers []*runtime.Buffer, r *ran) error {
	for i := range j.args {
		arg := &j.args[i]
		if len(arg.out) == 0 {
			continue
		}
		array := npy.Array{Type: arg.typ, Shape: arg.shape, Data: make([]byte, elements(arg.shape)*arg.typ.Size())}
		if err := dev.Stream().Read(ctx, buffers[i], 0, array.Data); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
		for _, file := range arg.out {
			if err := a.Save(ctx, file, func(w io.Writer) error { return npy.Write(w, array) }); err != nil {
				return fmt.Errorf("--out %d=%s: %w", i, file, files.WithoutPath(err))
			}
			r.Outputs = append(r.Outputs, output{i, file, arg.typ.String(), arg.shape})
		}
	}
	return nil
}
