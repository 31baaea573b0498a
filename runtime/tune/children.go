package tune

// Processes that measure, one at a time.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/internal/group"
	"github.com/concord-compute/concord/source"
)

var infinite = math.Inf(1)

func isDouble(d source.Define) bool { return d.Name == "T" && d.Value == "f64" }

// children starts processes as they are needed.
type children struct {
	command func() *exec.Cmd
	cmd     *exec.Cmd // the one that runs, or nil
	in      io.WriteCloser
	out     *os.File
	answers chan answer
	ended   chan error
	errors  *first
}

// ask returns the answer to a request, or why there is none. A process that has not answered in time, has ended, or
// whose candidate failed is replaced at the next request.
func (c *children) ask(ctx context.Context, q request, patience time.Duration) (answer, string) {
	none := answer{}
	if c.cmd == nil {
		if err := c.start(); err != nil {
			return none, fmt.Sprintf("start a process: %v", err)
		}
	} else { // what a new process wrote may be why it has ended
		c.errors.reset()
	}
	if err := json.NewEncoder(c.in).Encode(q); err != nil {
		return none, c.over()
	}
	doing := ""
	still := time.NewTimer(patience)
	defer still.Stop()
	for {
		select {
		case a, ok := <-c.answers:
			switch {
			case !ok:
				return none, during(doing) + c.over()
			case a.Failed != "": // its stream, or its device, may have failed for good
				c.stop()
				return none, a.Failed
			case a.Done && !a.answers(q):
				c.stop()
				return none, "its process measured something else: another program"
			case a.Done:
				return a, ""
			}
			doing = a.Doing
			still.Reset(patience)
		case <-still.C:
			c.stop()
			return none, during(doing) + fmt.Sprintf("it did not end within %v", patience)
		case <-ctx.Done():
			c.stop()
			return none, ctx.Err().Error()
		}
	}
}

func during(point string) string {
	if point == "" {
		return ""
	}
	return point + ": "
}

func (c *children) start() error {
	cmd := c.command()
	group.Own(cmd)
	c.errors = &first{}
	cmd.Stderr = c.errors
	cmd.WaitDelay = time.Second // what it has started may hold its outputs
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, far, err := os.Pipe()
	if err != nil {
		in.Close()
		return err
	}
	cmd.Stdout = far
	err = cmd.Start()
	far.Close()
	if err != nil {
		in.Close()
		out.Close()
		return err
	}
	answers, ended := make(chan answer), make(chan error, 1)
	go func() {
		defer close(answers)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var a answer
			if json.Unmarshal(lines.Bytes(), &a) == nil { // a driver may print, too
				answers <- a
			}
		}
	}()
	go func() { ended <- cmd.Wait() }()
	c.cmd, c.in, c.out, c.answers, c.ended = cmd, in, out, answers, ended
	return nil
}

// stop ends the process, and all that it has started.
func (c *children) stop() {
	if c.cmd == nil {
		return
	}
	group.Kill(c.cmd)
	c.in.Close()
	go func(answers chan answer) {
		for range answers {
		}
	}(c.answers)
	select {
	case <-c.ended:
	case <-time.After(5 * time.Second): // it waits for the driver in the kernel, which no signal ends
	}
	c.out.Close() // what it has started may hold the other end
	c.cmd = nil
}

// over ends a process that does not answer any more, and says how it ended and what it wrote first.
func (c *children) over() string {
	var err error
	select {
	case err = <-c.ended:
		c.ended <- err
	case <-time.After(time.Second):
	}
	c.stop()
	text := "its process ended"
	if err != nil {
		text += ": " + err.Error()
	}
	if last := c.errors.line(); last != "" {
		text += ": " + last
	}
	return text
}

// first keeps what a process first writes to its standard error for a request: there a crash says its reason.
type first struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const mostFirst = 4096

func (f *first) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.Write(b[:min(len(b), mostFirst-f.text.Len())])
	return len(b), nil
}

func (f *first) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text.Reset()
}

// line returns the first line.
func (f *first) line() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(f.text.String()), "\n")
	return line
}
