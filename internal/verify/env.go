package verify

// What a step works with.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime"

	"github.com/concord-compute/concord/runtime/driver"
)

// Env is what a step is given in its process. It is used by one goroutine at a time.
type Env struct {
	Device string // as it was named
	Quick  bool   // less of everything: the device is a CPU, or simulated

	session *runtime.Session
	tools   Tools
	job     job
	done    map[string]bool
	lost    bool // the device cannot be used any more
	out     *writer
}

// Tools are what the program around gives to the steps.
type Tools struct {
	// Doctor writes what is known of the machine. Its error, of what it finds of the device, is a failed check. May be
	// nil.
	Doctor func(ctx context.Context, device string, w io.Writer) error
	// Self is the command line of a process that calls Child, for steps that run parts of
	// themselves under a vendor's tool.
	Self []string
}

// skip is the error of a check that does not apply, with the reason.
type skip string

func (s skip) Error() string { return string(s) }

// skipf returns the error of a check, or of a whole step, that does not apply.
func skipf(format string, args ...any) error { return skip(fmt.Sprintf(format, args...)) }

// either returns the error of a check that says why it does not apply, or what is wrong.
func either(why string, err error) error {
	if err == nil && why != "" {
		return skip(why)
	}
	return err
}

// onDevice makes a step of what is done with the open device.
func onDevice(run func(ctx context.Context, e *Env, dev *runtime.Device) error) func(context.Context, *Env) error {
	return func(ctx context.Context, e *Env) error {
		dev, err := e.session.Open(ctx, e.Device)
		if err != nil {
			return err
		}
		if err := run(ctx, e, dev); err != nil || e.over(ctx) { // nothing of a lost device can be closed
			return err
		}
		return dev.Close()
	}
}

// over reports whether the step has to end: the time is over, or the device is lost.
func (e *Env) over(ctx context.Context) bool { return e.lost || ctx.Err() != nil }

// wanted reports whether a check is still to be made: no earlier process of the step has begun it.
func (e *Env) wanted(name string) bool { return !e.done[name] }

// doing tells what begins, so that it can be named if the process does not survive it.
func (e *Env) doing(name string) { e.out.put(record{Doing: name}) }

// fact tells something that was read.
func (e *Env) fact(name, format string, args ...any) {
	if value := fmt.Sprintf(format, args...); value != "" {
		e.out.put(record{Fact: &Fact{name, value}})
	}
}

// check makes one check, unless an earlier process has begun it or the step has to end. f returns nil if the device
// passes, a skip if it cannot be asked, and any other error if it fails. A panic is a failure.
func (e *Env) check(ctx context.Context, name string, f func(context.Context) error) {
	if e.over(ctx) || !e.wanted(name) {
		return
	}
	e.doing(name)
	start := time.Now()
	err := caught(ctx, f)
	c := Check{Name: name, Verdict: Pass, Seconds: time.Since(start).Seconds()}
	var s skip
	switch {
	case err == nil:
	case ctx.Err() != nil: // it was interrupted, which is no fault of the device
		return
	case errors.As(err, &s):
		c.Verdict, c.Reason = Skip, string(s)
	default:
		c.Verdict, c.Reason = Fail, reason(err)
	}
	e.out.put(record{Check: &c})
	e.lost = errors.Is(err, runtime.ErrDeviceLost)
}

// caught calls f and turns a panic into an error.
func caught(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f(ctx)
}

// longest is the number of bytes of a reason that are kept; logs of compilers can be very long.
const longest = 8 << 10

// reason is the text of an error, with the log of a compiler.
func reason(err error) string {
	text := err.Error()
	if b, ok := errors.AsType[*runtime.BuildError](err); ok && !strings.Contains(text, b.Log) {
		text += "\n" + b.Log
	}
	if help := runtime.Remedy(err); help != "" && !strings.Contains(text, help) {
		text += "\nwhat helps: " + help
	}
	return shorten(text, longest)
}

// shorten keeps the beginning and the end of a long text.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const gap = "\n[...]\n"
	head := (most - len(gap)) * 2 / 3
	return strings.ToValidUTF8(text[:head]+gap+text[len(text)-(most-len(gap)-head):], "?")
}

// Child does what a parent asks for: it reads its job from in, and writes records to out. It returns the exit status
// of the process. When in ends, the parent is gone, and the process ends at once.
func Child(ctx context.Context, in io.Reader, out io.Writer, tools Tools) int {
	j, err := readJob(in)
	if err == nil {
		go endWith(in)
	}
	return child(ctx, j, err, newWriter(out), tools)
}

// Once does the job that a step has put on the command line of a process, under a profiler.
func Once(ctx context.Context, text string, out io.Writer, tools Tools) int {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	return child(ctx, j, err, newWriter(out), tools)
}

// child does a job, unless reading it has failed.
func child(ctx context.Context, j job, err error, w *writer, tools Tools) int {
	list := append(Steps(), Step{Name: onceStep, run: onDevice(once)})
	at := slices.IndexFunc(list, func(s Step) bool { return s.Name == j.Step })
	if err == nil && at < 0 {
		err = errors.New("there is no step " + j.Step)
	}
	if err != nil {
		w.put(record{End: &end{Broken, err.Error()}})
		return 1
	}
	e := &Env{Device: j.Device, Quick: j.Quick, tools: tools, job: j, done: map[string]bool{}, out: w}
	for _, name := range j.Done {
		e.done[name] = true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(j.Seconds*float64(time.Second)))
	defer cancel()
	w.put(record{End: e.run(ctx, list[at])})
	return 0
}

// run does a step and says how it ended.
func (e *Env) run(ctx context.Context, s Step) *end {
	session, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	if err != nil {
		return &end{Broken, err.Error()}
	}
	e.session = session
	err = caught(ctx, func(ctx context.Context) error { return s.run(ctx, e) })
	var absent skip
	switch {
	case e.lost:
		return &end{Lost, "the device was lost"}
	case ctx.Err() != nil:
		return &end{Cut, "it stopped at the end of its share of the time"}
	case errors.As(err, &absent):
		return &end{Absent, string(absent)}
	case errors.Is(err, runtime.ErrDeviceLost):
		return &end{Lost, reason(err)}
	case errors.Is(err, runtime.ErrNoDevice) || errors.Is(err, driver.ErrUnknownBackend):
		return &end{NoDevice, reason(err)}
	case err != nil:
		return &end{Broken, reason(err)}
	}
	if err := session.Close(); err != nil {
		return &end{Broken, reason(err)}
	}
	return &end{Done, ""}
}
