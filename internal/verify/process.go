package verify

// One process of a step.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/concord-compute/concord/internal/group"
)

// process runs the processes of a step, one at a time.
type process struct {
	*runner
	step   Step
	res    *Result
	number int
	all    int
	end    time.Time
	log    *stepLog
	over   []string // checks that need not be made again: they are over, or ended a process
	doing  string   // the check that is under way
	told   *end     // the last record
}

// grace is the part of its time in which a process that was told to stop may finish what it does.
func grace(d time.Duration) time.Duration { return min(max(d/6, 1500*time.Millisecond), 5*time.Second) }

// run starts a process, and returns how it ended. When run returns, it and all that it started are gone.
func (p *process) run(ctx context.Context) end {
	p.told, p.doing = nil, ""
	limit := time.Until(p.end)
	cmd := p.opt.Command()
	group.Own(cmd)
	cmd.Env = append(cmd.Environ(), p.env...)
	cmd.Stderr = p.log
	cmd.WaitDelay = time.Second // a process that was started by it may hold its outputs
	in, err := cmd.StdinPipe()
	if err != nil {
		return end{Broken, err.Error()}
	}
	defer in.Close()
	out, far, err := os.Pipe()
	if err != nil {
		return end{Broken, err.Error()}
	}
	defer out.Close()
	cmd.Stdout = far
	err = cmd.Start()
	far.Close()
	if err != nil {
		return end{Broken, fmt.Sprintf("start a process: %v", err)}
	}
	lines := make(chan []byte)
	go read(out, lines)
	j := job{Step: p.step.Name, Device: p.opt.Device, Seconds: (limit - grace(limit)).Seconds(), Done: p.over,
		Quick: p.quick}
	go func() { _ = json.NewEncoder(in).Encode(j) }() // a process that does not read it is noticed below
	exited := make(chan error, 1)
	go func() {
		exited <- cmd.Wait()
		// What it wrote is in the pipe. A process that it started may hold the other end for ever.
		_ = out.SetReadDeadline(time.Now().Add(drain))
	}()
	killed, waited := p.watch(ctx, lines, exited, limit)
	group.Kill(cmd) // also what it started and left
	if killed != nil {
		select {
		case waited = <-exited:
		case <-time.After(dying): // it waits for the driver in the kernel, which no signal ends
			return end{Hung, killed.Reason + "; it does not die"}
		}
	}
	for line := range lines {
		p.take(line)
	}
	return p.how(ctx, killed, waited)
}

// drain is how long the last records of a process that has ended may take.
const drain = 300 * time.Millisecond

// dying is how long a process that was killed may take to end.
const dying = 3 * time.Second

// how says how a process ended.
func (p *process) how(ctx context.Context, killed *end, waited error) end {
	switch {
	case p.told != nil && p.told.State == Done && killed == nil && waited != nil && !errors.Is(waited, exec.ErrWaitDelay):
		return end{Crashed, "its process ended at its end: " + waited.Error()}
	case p.told != nil:
		return *p.told
	case ctx.Err() != nil:
		return end{Cut, "interrupted"}
	case killed != nil:
		return *killed
	case waited != nil:
		return end{Crashed, "its process ended: " + waited.Error() + during(p.doing)}
	}
	return end{Crashed, "its process ended without a word" + during(p.doing)}
}

func during(check string) string {
	if check == "" {
		return ""
	}
	return ", during " + check
}

// patience is the least time in which a processor's compiler must have come to an end. A card's does in a moment what
// takes it seconds on a busy machine. Tests make it shorter.
var patience = time.Minute

// quiet is how long nothing may come from a process before it counts as hung.
func (p *process) quiet(limit time.Duration) time.Duration {
	long := limit * 3 / 4
	switch {
	case p.step.Quiet:
		return limit + time.Second
	case p.quick:
		return max(long, patience)
	}
	return max(limit/2, min(4*least, long))
}

// watch takes the records until the process has ended, and returns how; or until it has to be killed, and returns why.
func (p *process) watch(ctx context.Context, lines <-chan []byte, exited <-chan error,
	limit time.Duration) (killed *end, waited error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	quiet := p.quiet(limit)
	still := time.NewTimer(quiet)
	defer still.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				lines = nil // it has closed its output, and may go on
				continue
			}
			still.Reset(quiet)
			p.take(line)
		case err := <-exited:
			return nil, err
		case <-over.C:
			if p.quick && p.doing != "" { // compilers of processors take seconds, and cannot be stopped
				return &end{Cut, "it was stopped at the end of its share of the time" + during(p.doing)}, nil
			}
			return &end{Hung, "it did not stop at the end of its share of the time" + during(p.doing)}, nil
		case <-still.C:
			return &end{Hung, fmt.Sprintf("nothing came from it for %.0f s", quiet.Seconds()) + during(p.doing)}, nil
		case <-ctx.Done():
			return &end{Cut, "interrupted"}, nil
		}
	}
}

// longestLine bounds a record.
const longestLine = 1 << 20

// read sends the lines of a process. What is longer than a record is cut off.
func read(out io.Reader, lines chan<- []byte) {
	defer close(lines)
	r := bufio.NewReader(out)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), longestLine-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 {
			lines <- bytes.TrimSuffix(line, []byte("\n"))
		}
		if line = nil; err != nil {
			return
		}
	}
}

// take notes a record.
func (p *process) take(line []byte) {
	p.log.record(line)
	var r record
	for json.Unmarshal(line, &r) != nil { // a driver has written before it, in the same line, or the line is no record
		at := bytes.IndexByte(line[min(1, len(line)):], '{')
		if at < 0 {
			return
		}
		line, r = line[at+1:], record{}
	}
	p.res.take(r)
	switch {
	case r.Doing != "":
		p.doing = r.Doing
		p.tell(r.Doing, false)
	case r.Check != nil:
		p.doing, p.over = "", append(p.over, r.Check.Name)
	case r.Rate != nil:
		p.doing, p.over = "", append(p.over, r.Rate.Name)
	case r.About != nil:
		p.report.About = r.About
	case r.Libraries != nil && p.report.About != nil:
		p.report.About.Libraries = r.Libraries
	case r.End != nil:
		p.told = r.End
	}
	if time.Since(p.written) > time.Second {
		_ = p.write() // the write after the step reports its error
	}
}

// tell reports progress.
func (p *process) tell(doing string, ended bool) {
	if p.opt.Progress != nil {
		p.opt.Progress(Progress{Result: p.res, Number: p.number, Steps: p.all, Doing: doing, Ended: ended,
			Elapsed: time.Since(p.start), Limit: p.opt.Limit})
	}
}

// readJob reads the line that a process is given. It reads no byte more.
func readJob(in io.Reader) (j job, err error) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := io.ReadFull(in, b); err != nil {
			return j, fmt.Errorf("read the job: %w", err)
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return j, json.Unmarshal(line, &j)
}

// endWith ends this process and all that it has started when in ends.
func endWith(in io.Reader) {
	_, _ = io.Copy(io.Discard, in)
	if dir := os.Getenv("TMPDIR"); strings.HasPrefix(filepath.Base(dir), tempName) {
		_ = os.RemoveAll(dir) // the parent would have
	}
	group.End()
}
