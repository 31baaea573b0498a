package main

// PyTorch and FAISS, each in a process of Python that waits for requests.

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
)

//go:embed peers.py
var script string

// interpreter is Debian's, which has Debian's modules.
const interpreter = "/usr/bin/python3"

// python is one such process, with the environment that makes a setting.
type python struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// settings are what may make a library faster, to be tried. OpenBLAS is below FAISS; the
// threads of the two would keep each other waiting if they spun.
var settings = map[string][]string{
	"torch": {"ATEN_CPU_CAPABILITY=avx2", "ATEN_CPU_CAPABILITY=avx512"},
	"faiss": {"OPENBLAS_CORETYPE=SKYLAKEX" + asleep, "OPENBLAS_CORETYPE=ZEN" + asleep, "OPENBLAS_CORETYPE=HASWELL" + asleep},
}

const asleep = " OMP_WAIT_POLICY=PASSIVE OPENBLAS_THREAD_TIMEOUT=4"

// titles are the names of libraries for people.
var titles = map[string]string{"torch": "PyTorch", "faiss": "FAISS"}

func startPython(ctx context.Context, setting string, threads int) (*python, error) {
	cmd := exec.CommandContext(ctx, interpreter, "-c", script)
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "OPENBLAS_") })
	n := fmt.Sprint(threads)
	// Large pages are what our buffers have, too.
	cmd.Env = append(env, "OMP_NUM_THREADS="+n, "OPENBLAS_NUM_THREADS="+n, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")
	cmd.Env = append(cmd.Env, strings.Fields(setting)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &python{cmd, in, bufio.NewReader(out)}, nil
}

// answer is what the process says.
type answer struct {
	Note    string  `json:"note"`
	Ns      float64 `json:"ns"`
	Error   string  `json:"error"`
	Missing string  `json:"missing"`
}

// missing is an error that names packages.
type missing string

func (m missing) Error() string { return "apt-get install " + string(m) }

func (p *python) ask(request map[string]any) (a answer, err error) {
	line, err := json.Marshal(request)
	if err != nil {
		return a, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return a, fmt.Errorf("python: %w", err)
	}
	if line, err = p.out.ReadBytes('\n'); err != nil {
		return a, fmt.Errorf("python: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("python: %w", err)
	}
	switch {
	case a.Missing != "":
		return a, missing(a.Missing)
	case a.Error != "":
		return a, errors.New("python: " + a.Error)
	}
	return a, nil
}

// prepare makes the process ready to make a call of peers.py.
func (p *python) prepare(call string, args map[string]any) (note string, err error) {
	a, err := p.ask(map[string]any{"call": call, "args": args})
	return a.Note, err
}

// run makes a call n times and returns nanoseconds of one.
func (p *python) run(call string, n int) (float64, error) {
	a, err := p.ask(map[string]any{"run": n, "of": call})
	return a.Ns, err
}

func (p *python) drop(call string) { _, _ = p.ask(map[string]any{"drop": call}) } // the next request shows it

// python is the process for a setting.
func (b *bench) python(setting string) (*python, error) {
	if p, ok := b.pythons[setting]; ok {
		return p, nil
	}
	p, err := startPython(b.ctx, setting, b.threads)
	if err == nil {
		b.pythons[setting] = p
	}
	return p, err
}

func (b *bench) stopPythons() {
	for _, p := range b.pythons {
		p.in.Close()
		_ = p.cmd.Wait() // nothing is left to lose
	}
}

// peer is a call of peers.py in the setting of its library, and among the calls (which
// do the same in several ways), with which it is fastest.
func (b *bench) peer(library string, args map[string]any, calls ...string) (contender, error) {
	best, fastest := contender{name: titles[library]}, math.Inf(1)
	var from *python
	var call string
	for _, setting := range settings[library] {
		p, err := b.python(setting)
		if err != nil {
			best.setting = err.Error()
			return best, nil
		}
		for _, name := range calls {
			note, err := p.prepare(name, args)
			if m, ok := errors.AsType[missing](err); ok {
				best.setting = m.Error()
				return best, nil
			}
			if err != nil {
				return best, err
			}
			for range 3 {
				ns, err := p.run(name, 1)
				if err != nil {
					return best, err
				}
				if ns < fastest {
					fastest, from, call, best.setting = ns, p, name, note+", "+setting
				}
				if ns > 3e8 {
					break // long enough to be compared
				}
			}
			p.drop(name)
		}
	}
	if _, err := from.prepare(call, args); err != nil {
		return best, err
	}
	best.sample = func(n int) (float64, error) { return from.run(call, n) }
	best.free = func() { from.drop(call) }
	return best, nil
}
