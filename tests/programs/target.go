package programs

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// Target is one implementation: a device, and how it is set up.
type Target struct {
	Name    string
	Backend string   // its name in CONCORD_REQUIRE
	Device  string   // name for opening it; "" for a target that only compiles
	Cross   string   // the architecture that a compiler compiles for
	Env     []string // additional environment of its process
	Defines []source.Define
	Base    bool // the other targets are compared with it, in turn with other bases
	Foreign bool // its front end and its built-in functions are not Concord's
	Rough   bool // its inexact functions exceed the specification's limits
	Named   bool // it is used only if it is named
	Most    int  // items of a launch; 0 means any number
	Turns   int  // how often programs are tried on it, relative to the others

	// Plant changes a program before it is run, for tests of the comparison.
	Plant func(text string) string
}

// request is a program for a target's process.
type request struct {
	Text     string
	Launches []Launch
}

// Result is the result of a program on a target: an error, or the outputs of each launch.
type Result struct {
	Err     string
	Lacks   bool // the target lacks a feature that the program needs
	Outputs [][][]byte
}

// process is a running target.
type process struct {
	target *Target
	cmd    *exec.Cmd
	to     io.WriteCloser
	from   io.ReadCloser
	enc    *gob.Encoder
	dec    *gob.Decoder
	ran    int
	stderr *said
	dir    string
}

// variableTarget is the variable that names the target of a child process.
const variableTarget = "PROGRAMS_TARGET"

// perProcess is the number of programs that a process runs. It is limited because drivers keep
// compiled programs in memory.
const perProcess = 150

// start runs this very executable as a target.
func start(t *Target) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{target: t, stderr: &said{}}
	if p.dir, err = os.MkdirTemp("", "programs-"); err != nil {
		return nil, err
	}
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), to.Close())
	}
	p.cmd = exec.Command(self)
	p.cmd.Env = append(os.Environ(), variableTarget+"="+t.Name, "CONCORD_CACHE_DIR=off", "CONCORD_CPU_THREADS=2",
		"POCL_KERNEL_CACHE=0", "POCL_MAX_PTHREAD_COUNT=2", "POCL_CACHE_DIR="+p.dir, "TMPDIR="+p.dir, "XDG_CACHE_HOME="+p.dir)
	p.cmd.Env = append(p.cmd.Env, t.Env...)
	p.cmd.ExtraFiles = []*os.File{in, out}
	p.cmd.Stdout, p.cmd.Stderr = p.stderr, p.stderr
	err = p.cmd.Start()
	_, _ = in.Close(), out.Close()
	p.to, p.from, p.enc, p.dec = to, from, gob.NewEncoder(to), gob.NewDecoder(from)
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// close ends the process.
func (p *process) close() {
	_ = p.to.Close()
	if p.cmd.Process != nil {
		done := make(chan struct{})
		go func() { _ = p.cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(2 * time.Second):
			_ = p.cmd.Process.Kill()
			<-done
		}
	}
	_ = p.from.Close()
	_ = os.RemoveAll(p.dir)
}

// patience is the time limit of a target for one program. Exceeding it is a finding.
const patience = 4 * time.Minute

// run runs a program. An error means that the process ended or hangs and cannot be used any more.
func (p *process) run(r *request) (Result, error) {
	var res Result
	p.ran++
	p.stderr.forget()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.enc.Encode(r); err != nil {
		return res, fmt.Errorf("the process ended: %w: %s", err, p.stderr)
	}
	begin := time.Now()
	if err := p.dec.Decode(&res); err != nil {
		if time.Since(begin) >= patience {
			return res, fmt.Errorf("no answer in %v", patience)
		}
		return res, fmt.Errorf("the process died: %w: %s", err, p.stderr)
	}
	return res, nil
}

// said keeps the beginning of a process's output about one program.
type said struct {
	mu   sync.Mutex
	text []byte
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, b[:min(len(b), 1000-len(s.text))]...)
	return len(b), nil
}

func (s *said) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = s.text[:0]
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(bytes.TrimSpace(s.text))
}

// Serve is the process of a target: it runs programs until its input ends.
func Serve(t *Target) error {
	from, to := os.NewFile(3, "requests"), os.NewFile(4, "results")
	dec, enc := gob.NewDecoder(from), gob.NewEncoder(to)
	var run func(*request) (Result, error)
	if t.Device == "" {
		run = t.compiler()
	} else {
		d, err := runtime.Open(context.Background(), t.Device)
		if err != nil {
			return err
		}
		defer d.Close()
		run = func(r *request) (Result, error) { return execute(d, t, r) }
	}
	for {
		var r request
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if t.Plant != nil {
			r.Text = t.Plant(r.Text)
		}
		res, err := run(&r)
		if err != nil {
			res = Result{Err: err.Error(), Lacks: res.Lacks}
			if build := (*runtime.BuildError)(nil); errors.As(err, &build) {
				res.Err += "\n" + errorLines(build.Log)
			}
		}
		if err := enc.Encode(res); err != nil {
			return err
		}
	}
}

// errorLines returns the lines of a compiler's log that contain errors.
func errorLines(log string) string {
	var lines []string
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(line, "rror") && len(lines) < 20 {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// lacks reports whether a text needs a feature that is missing.
func lacks(f *source.Features, text string) bool {
	return !f.FP64 && strings.Contains(text, "cl_khr_fp64") || !f.FP16 && strings.Contains(text, "cl_khr_fp16") ||
		!f.Int64Atomic && strings.Contains(text, "atom_")
}

// execute builds a program for a device and launches it.
func execute(d *runtime.Device, t *Target, r *request) (res Result, err error) {
	ctx := context.Background()
	if lacks(d.Features(), r.Text) {
		return Result{Lacks: true}, nil
	}
	unit, err := source.Parse(r.Text, source.Options{Name: "program.cl", Features: d.Features(), Defines: t.Defines})
	if err != nil {
		return res, fmt.Errorf("parse: %w", err)
	}
	prog, err := d.Program(ctx, unit)
	if err != nil {
		return res, fmt.Errorf("build: %w", err)
	}
	defer func() { err = errors.Join(err, prog.Close()) }()
	for _, l := range r.Launches {
		if t.Most > 0 && l.Items[0]*l.Items[1]*l.Items[2] > t.Most {
			res.Outputs = append(res.Outputs, nil)
			continue
		}
		outs, err := launch(ctx, d, prog, &l)
		if err != nil {
			return res, fmt.Errorf("launch %s %v in %v: %w", l.Kernel, l.Items, l.Group, err)
		}
		res.Outputs = append(res.Outputs, outs)
	}
	return res, nil
}

func launch(ctx context.Context, d *runtime.Device, prog *runtime.Program, l *Launch) (outs [][]byte, err error) {
	k, err := prog.Kernel(l.Kernel)
	if err != nil {
		return nil, err
	}
	var args []any
	var read []*runtime.Buffer
	for i, a := range l.Args {
		switch {
		case a.Local > 0:
			args = append(args, runtime.Local(a.Local))
		case !a.Buffer:
			args = append(args, a.Data)
		default:
			whole, err := runtime.Upload(ctx, d, a.Data)
			if err != nil {
				return nil, err
			}
			defer whole.Close()
			view, err := whole.As(elementOf(k.Params()[i].Kind))
			if err != nil {
				return nil, err
			}
			defer view.Close()
			args = append(args, view)
			if a.Out {
				read = append(read, whole)
			}
		}
	}
	if err := d.Stream().Launch(k, runtime.Grid{Items: l.Items, Group: l.Group}, args...); err != nil {
		return nil, err
	}
	for _, b := range read {
		data := make([]byte, b.Len())
		if err := runtime.Read(ctx, b, data); err != nil {
			return nil, err
		}
		outs = append(outs, data)
	}
	return outs, d.Sync(ctx)
}

// elementOf returns the element type for a parameter's kind; records are bytes.
func elementOf(k source.Kind) runtime.Type {
	for _, t := range runtimeTypes {
		if t.Kind() == k {
			return t
		}
	}
	return runtime.U8
}

var runtimeTypes = []runtime.Type{runtime.I8, runtime.U8, runtime.I16, runtime.U16, runtime.I32, runtime.U32,
	runtime.I64, runtime.U64, runtime.F32, runtime.F64}

// exists reports whether a file exists.
func exists(elem ...string) bool {
	_, err := os.Stat(filepath.Join(elem...))
	return err == nil
}
