package main

// PyTorch and FAISS, each in a Python process that waits for requests.

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

//go:embed peers.py
var script string

// interpreter is Debian's Python, which has Debian's modules.
const interpreter = "/usr/bin/python3"

// python is one such process, with the environment that makes a setting.
type python struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	setting string
	gone    error // why it ended, if it has
}

// titles are the full names of libraries.
var titles = map[string]string{"torch": "PyTorch", "torch and BLAS": "PyTorch", "faiss": "FAISS", "hnswlib": "hnswlib"}

func startPython(ctx context.Context, interpreter, setting string, threads int) (*python, error) {
	cmd := exec.CommandContext(ctx, interpreter, "-c", script)
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "OPENBLAS_") })
	n := fmt.Sprint(threads)
	// Large pages, as Concord's buffers have.
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
	return &python{cmd: cmd, in: in, out: bufio.NewReader(out), setting: setting}, nil
}

// answer is a reply of the process.
type answer struct {
	Note    string  `json:"note"`
	Ns      float64 `json:"ns"`
	Error   string  `json:"error"`
	Missing string  `json:"missing"`
}

// missing is an error that names the packages to install.
type missing string

func (m missing) Error() string { return "apt-get install " + string(m) }

// peerError is an error of a peer. The peer is left out, and the run goes on.
type peerError struct{ error }

func (p *python) ask(request map[string]any) (a answer, err error) {
	if p.gone != nil {
		return a, p.gone
	}
	line, err := json.Marshal(request)
	if err != nil {
		return a, err
	}
	if _, err = p.in.Write(append(line, '\n')); err == nil {
		line, err = p.out.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		return a, p.end(err)
	}
	switch {
	case a.Missing != "":
		return a, missing(a.Missing)
	case a.Error != "":
		return a, peerError{errors.New("python: " + a.Error)}
	}
	return a, nil
}

// end ends a process that does not reply correctly, and returns the reason: if possible its exit
// status, which says more than that its pipe is closed.
func (p *python) end(err error) error {
	p.in.Close()
	_ = p.cmd.Process.Kill() // it may still be running
	if died := p.cmd.Wait(); died != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)) {
		err = died
	}
	p.gone = peerError{fmt.Errorf("python with %s died: %w", p.setting, err)}
	return p.gone
}

// prepare makes the process ready to make a call of peers.py.
func (p *python) prepare(call string, args map[string]any) (note string, err error) {
	a, err := p.ask(map[string]any{"call": call, "args": args})
	return a.Note, err
}

// run makes a call warm times, and then n times, and returns nanoseconds of one of these.
func (p *python) run(call string, warm, n int) (float64, error) {
	a, err := p.ask(map[string]any{"run": n, "warm": warm, "of": call})
	return a.Ns, err
}

func (p *python) drop(call string) { _, _ = p.ask(map[string]any{"drop": call}) } // the next request shows it

// python returns the process for a setting. If the last one died it starts another.
func (b *bench) python(setting string) (*python, error) {
	if p, ok := b.pythons[setting]; ok && p.gone == nil {
		return p, nil
	}
	p, err := startPython(b.ctx, b.interpreter, setting, b.threads)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing("python3")
	}
	if err != nil {
		return nil, peerError{err}
	}
	b.pythons[setting] = p
	return p, nil
}

func (b *bench) stopPythons() {
	for _, p := range b.pythons {
		if p.gone == nil {
			p.in.Close()
			_ = p.cmd.Wait() // nothing is left to lose
		}
	}
}

// peer returns the fastest combination of a setting and one of the calls of peers.py, which do the
// same work in several ways. Settings in which the library fails are left out; a peer that fails in
// all of them is missing, with the reason.
func (b *bench) peer(library string, args map[string]any, calls ...string) (contender, error) {
	best, fastest := contender{name: titles[library], setting: "not tried"}, math.Inf(1)
	var setting, call string
	for _, s := range b.features.peerSettings(library) {
		for _, name := range calls {
			note, ns, err := b.try(s, name, args)
			_, absent := errors.AsType[missing](err)
			switch {
			case b.ctx.Err() != nil:
				return best, b.ctx.Err()
			case absent: // in every setting
				best.setting = err.Error()
				return best, nil
			case err != nil:
				b.say("%s %s: %v", titles[library], name, err)
				if call == "" {
					best.setting = err.Error()
				}
			case ns < fastest:
				fastest, setting, call, best.setting = ns, s, name, note+", "+s
			}
		}
	}
	if call == "" {
		return best, nil
	}
	p, err := b.python(setting)
	if err == nil {
		_, err = p.prepare(call, args)
	}
	if err != nil {
		best.setting = err.Error()
		return best, nil
	}
	best.sample = func(warm, n int) (float64, error) { return p.run(call, warm, n) }
	best.free = func() { p.drop(call) }
	return best, nil
}

// failed reports whether an error is one of a peer, which is then left out.
func failed(err error) bool {
	_, absent := errors.AsType[missing](err)
	_, wrong := errors.AsType[peerError](err)
	return absent || wrong
}

// try is the time of a call in a setting, the best of a few.
func (b *bench) try(setting, call string, args map[string]any) (note string, best float64, err error) {
	p, err := b.python(setting)
	if err != nil {
		return "", 0, err
	}
	if note, err = p.prepare(call, args); err != nil {
		return "", 0, err
	}
	defer p.drop(call)
	best = math.Inf(1)
	for range 3 {
		ns, err := p.run(call, 0, 1)
		if err != nil {
			return "", 0, err
		}
		if best = min(best, ns); ns > 3e8 {
			break // long enough to be compared
		}
	}
	return note, best, nil
}
