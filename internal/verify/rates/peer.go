package rates

// PyTorch, in a Python process that waits for requests.

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime"
)

//go:embed peer.py
var script string

// Limits of the peer: of an answer in time and in bytes. The first answer comes when PyTorch is loaded.
const (
	answerTime  = 30 * time.Second
	answerBytes = 1 << 16
	lastWords   = 2048 // bytes of what the process wrote to its standard error that are kept
)

// peer is PyTorch on the device that is measured. Without one, its methods do nothing.
type peer struct {
	device       string   // as PyTorch names it; "": none
	interpreters []string // to try
	threads      int      // of PyTorch on the processor
	name         string   // "PyTorch 2.11.0+cu130", once it runs
	process      *process // nil before the first request, and after its end
	gone         error    // why there is none any more
	told         bool     // a rate has said so
}

// newPeer chooses where PyTorch could run the same work. It starts nothing.
func newPeer(dev *runtime.Device, interpreter string) *peer {
	p := &peer{}
	info := dev.Info()
	switch {
	case interpreter == "none" || info.Simulated:
		return p
	case info.Backend == "cuda", info.Backend == "rocm": // PyTorch for ROCm says cuda, too
		_, index, _ := strings.Cut(info.ID, ":")
		p.device = "cuda:" + index
	case !info.IsGPU():
		p.device = "cpu"
	}
	const system = "/usr/bin/python3" // which has the system's packages
	p.interpreters = []string{"python3", system}
	if found, err := exec.LookPath("python3"); interpreter != "" || err == nil && found == system {
		p.interpreters = []string{cmp.Or(interpreter, system)}
	}
	p.threads = cmp.Or(dev.Session().Config().CPUThreads, goruntime.GOMAXPROCS(0))
	return p
}

// call is work that the peer has prepared; nil is none.
type call struct{ peer *peer }

// ready lets the peer prepare the same work, and notes in the rate the peer's name, or why there is no peer.
func (p *peer) ready(ctx context.Context, j *job, r *Rate) *call {
	if p.device == "" || j.call == "" || !p.start(ctx, r) {
		return nil
	}
	a, err := p.ask(ctx, map[string]any{"call": j.call, "args": j.args})
	if err != nil {
		p.excuse(err, r)
		return nil
	}
	r.Peer, r.PeerNote = p.name, a.Note
	return &call{peer: p}
}

// time returns the peer's nanoseconds for one of n runs, or 0 after a failure, which the rate then names.
func (c *call) time(ctx context.Context, n int, r *Rate) float64 {
	if c == nil || c.peer == nil {
		return 0
	}
	a, err := c.peer.ask(ctx, map[string]any{"run": n})
	if err == nil && a.Ns <= 0 {
		err = c.peer.end(fmt.Errorf("it answered %v nanoseconds", a.Ns))
	}
	if err != nil {
		r.Peer = ""
		c.peer.excuse(err, r)
		c.peer = nil
		return 0
	}
	return a.Ns
}

// drop makes the peer free the memory of the call.
func (c *call) drop() {
	if c != nil && c.peer != nil && c.peer.process != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, _ = c.peer.ask(ctx, map[string]any{"drop": true}) // the next request shows it
	}
}

// excuse notes why the peer has no rate. That it is gone is noted once.
func (p *peer) excuse(err error, r *Rate) {
	if p.gone != nil && p.told {
		return
	}
	p.told = p.gone != nil
	r.PeerNote = err.Error()
}

// start starts PyTorch, if it does not run, and reports whether it does.
func (p *peer) start(ctx context.Context, r *Rate) bool {
	if p.process != nil || p.gone != nil {
		return p.gone == nil
	}
	var errs []error
	for _, interpreter := range p.interpreters {
		var err error
		if p.process, err = startProcess(interpreter, p.device, p.threads); err == nil {
			var a answer
			if a, err = p.process.answer(ctx); err == nil && a.Peer == "" {
				err = errors.New("it did not say who it is")
			}
			if err == nil {
				p.name = a.Peer
				return true
			}
			err = errors.Join(err, p.process.end())
			p.process = nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", interpreter, err))
	}
	p.gone = oneLine{fmt.Errorf("no PyTorch: %w", errors.Join(errs...))}
	p.excuse(p.gone, r)
	return false
}

// ask sends a request and returns its answer. Anything but an answer ends the process.
func (p *peer) ask(ctx context.Context, request map[string]any) (answer, error) {
	if p.gone != nil {
		return answer{}, p.gone
	}
	line, err := json.Marshal(request)
	if err == nil {
		_, err = p.process.in.Write(append(line, '\n'))
	}
	if err != nil {
		return answer{}, p.end(err)
	}
	a, err := p.process.answer(ctx)
	if refused, ok := errors.AsType[refusal](err); ok {
		return a, refused
	}
	if err != nil {
		return a, p.end(err)
	}
	return a, nil
}

// end ends a process that did not answer as it should, and returns why.
func (p *peer) end(err error) error {
	p.gone = oneLine{fmt.Errorf("PyTorch is left out: %w", errors.Join(err, p.process.end()))}
	p.process = nil
	return p.gone
}

func (p *peer) stop() {
	if p.process != nil {
		_ = p.process.end() // nothing is left to lose
		p.process = nil
	}
}

// oneLine is an error whose text is one line.
type oneLine struct{ error }

func (l oneLine) Error() string { return strings.Join(strings.Fields(l.error.Error()), " ") }
func (l oneLine) Unwrap() error { return l.error }

// answer is a line that the process writes.
type answer struct {
	Peer  string  `json:"peer"`
	Note  string  `json:"note"`
	Ns    float64 `json:"ns"`
	Error string  `json:"error"`
}

// refusal is an error of the call, after which the process goes on.
type refusal string

func (r refusal) Error() string { return string(r) }

// process is a running interpreter.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte // closed at the end of what it writes
	last  tail
}

func startProcess(interpreter, device string, threads int) (*process, error) {
	cmd := exec.Command(interpreter, "-c", script, device)
	cmd.Env = append(os.Environ(), fmt.Sprint("OMP_NUM_THREADS=", threads)) // the last one counts
	p := &process{cmd: cmd, lines: make(chan []byte)}
	cmd.Stderr = &p.last
	cmd.WaitDelay = time.Second // for children of the interpreter that keep its pipes
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
	p.in = in
	go func() {
		defer close(p.lines)
		s := bufio.NewScanner(out)
		s.Buffer(nil, answerBytes)
		for s.Scan() {
			p.lines <- slices.Clone(s.Bytes())
		}
	}()
	return p, nil
}

// answer waits for a line.
func (p *process) answer(ctx context.Context) (a answer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf("no answer in %v", answerTime))
	defer cancel()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return a, io.ErrUnexpectedEOF
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return a, fmt.Errorf("no answer but %.60q", line)
		}
		if a.Error != "" {
			return a, refusal(a.Error)
		}
		return a, nil
	case <-ctx.Done():
		return a, context.Cause(ctx)
	}
}

// end ends the process, and returns how it had ended before, with its last words.
func (p *process) end() error {
	p.in.Close()
	_ = p.cmd.Process.Kill() // it may still be running
	go func() {
		for range p.lines { // so that the reader, whose pipe Wait closes, is not stuck
		}
	}()
	err := p.cmd.Wait()
	if err != nil && err.Error() == "signal: killed" { // that was here
		err = nil
	}
	return errors.Join(err, p.last.error())
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, b[max(0, len(b)-lastWords):]...)
	t.data = t.data[max(0, len(t.data)-lastWords):]
	return len(b), nil
}

// error returns what was kept, or nil for nothing.
func (t *tail) error() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.data) == 0 {
		return nil
	}
	return errors.New(strings.TrimSpace(string(t.data)))
}
