package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/internal/verify/rates"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
)

// The processes of the tests are this program again.
const role = "VERIFY_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "step":
		steps = odd
		os.Exit(Child(context.Background(), os.Stdin, os.Stdout, Tools{}))
	case "real":
		os.Exit(Child(context.Background(), os.Stdin, os.Stdout, Tools{Self: []string{os.Args[0]}}))
	case "parent": // is killed by a test
		steps = odd
		_, _ = Run(context.Background(), options(os.Args[1], time.Minute, os.Args[2:]...))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// odd are steps that end in every way that there is. They do not touch the device.
var odd = []Step{
	{Name: "about", Area: "a", Budget: time.Second, run: func(ctx context.Context, e *Env) error {
		e.out.put(record{About: &About{System: "test", Cores: 1}})
		e.check(ctx, "about/1", func(context.Context) error { return nil })
		return nil
	}},
	{Name: "orphan", Area: "c", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		cmd := exec.Command("sleep", "1003") // it holds the outputs of the process
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		return sequence(ctx, e, "orphan", func() error { return nil })
	}},
	{Name: "slow", Area: "c", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		for i := 0; !e.over(ctx); i++ {
			e.check(ctx, fmt.Sprintf("slow/%d", i), func(context.Context) error {
				time.Sleep(10 * time.Millisecond)
				return nil
			})
		}
		return nil
	}},
	{Name: "good", Area: "a", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		e.fact("a fact", "%d", 33)
		e.out.put(record{Rate: &rates.Rate{Area: "x", Name: "good/rate", Unit: "GB/s", Median: 2, Roof: 4}})
		return sequence(ctx, e, "good", func() error { return nil }, func() error { return skipf("no such thing") },
			func() error { return nil })
	}},
	{Name: "wrong", Area: "b", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		return sequence(ctx, e, "wrong", func() error { return errors.New("two is three") }, func() error {
			panic("a panic")
		}, func() error { return nil })
	}},
	{Name: "crash", Area: "b", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		return sequence(ctx, e, "crash", func() error { return nil }, func() error {
			fmt.Fprintln(os.Stderr, "a driver's last words")
			os.Exit(7)
			return nil
		}, func() error { return nil })
	}},
	{Name: "hang", Area: "b", Budget: 30 * time.Second, run: func(ctx context.Context, e *Env) error {
		return sequence(ctx, e, "hang", func() error { select {} }, func() error { return nil })
	}},
	{Name: "lost", Area: "b", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		for i := range 3 {
			e.check(ctx, fmt.Sprintf("lost/%d", i), func(context.Context) error { return nil })
			if i == 1 && e.wanted("lost/2") {
				e.doing("lost/2")
				e.lost = true
				return nil
			}
		}
		return nil
	}},
	{Name: "broken", Area: "c", Budget: 10 * time.Second, run: func(context.Context, *Env) error {
		return errors.New("it does not open a file")
	}},
	{Name: "absent", Area: "c", Budget: 10 * time.Second, run: func(context.Context, *Env) error {
		return skipf("not of this device")
	}},
	// a line that is no record, and one with a driver's text
	{Name: "long", Area: "c", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		_, _ = os.Stdout.Write(append(bytes.Repeat([]byte("x"), 3<<20), '\n'))
		fmt.Print("a driver says { hello")
		return sequence(ctx, e, "long", func() error { return errors.New("found behind a driver's text") })
	}},
	{Name: "shut", Area: "c", Budget: 3 * time.Second, run: func(ctx context.Context, e *Env) error {
		e.doing("shut/1")
		os.Stdout.Close()
		select {} // its output has ended, and it has not
	}},
	{Name: "ends", Area: "c", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		_ = sequence(ctx, e, "ends", func() error { return nil })
		e.out.put(record{End: &end{Done, ""}})
		os.Exit(7) // as a driver's handler at the end of a program
		return nil
	}},
	{Name: "noise", Area: "c", Budget: 10 * time.Second, run: func(ctx context.Context, e *Env) error {
		_, _ = os.Stdout.Write(append(make([]byte, 100), "\nnot a record\n{\"check\":3}\n"...))
		for range 2000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 100))
		}
		return sequence(ctx, e, "noise", func() error { return nil })
	}},
}

// sequence makes checks in order, and returns nil.
func sequence(ctx context.Context, e *Env, name string, list ...func() error) error {
	for i, f := range list {
		e.check(ctx, fmt.Sprintf("%s/%d", name, i+1), func(context.Context) error { return f() })
	}
	return nil
}

// options are those of a run of odd steps.
func options(dir string, limit time.Duration, only ...string) Options {
	return Options{Device: "cpu:0", Dir: dir, Limit: limit, Only: only, Command: again("step")}
}

// again returns this program in a role.
func again(name string, args ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), role+"="+name)
		return cmd
	}
}

// oddly makes the plan that of the tests.
func oddly(t *testing.T) {
	usual, long := steps, patience
	steps, patience = odd, 0
	t.Cleanup(func() { steps, patience = usual, long })
}

func names(list []Step) (all []string) {
	for _, s := range list {
		all = append(all, s.Name)
	}
	return all
}

// readReport reads what is on disk.
func readReport(t *testing.T, dir string) *Report {
	text, err := os.ReadFile(filepath.Join(dir, jsonFile))
	require.NoError(t, err)
	var r Report
	require.NoError(t, json.Unmarshal(text, &r))
	return &r
}

// TestEveryEnding: each way to end is named, costs the other steps nothing, and what was shown before and after it is
// kept.
func TestEveryEnding(t *testing.T) {
	oddly(t)
	dir, page := filepath.Join(t.TempDir(), "new"), filepath.Join(t.TempDir(), "page.html")
	opt := options(dir, time.Minute)
	opt.HTML = page
	start := time.Now()
	r, err := Run(t.Context(), opt)
	require.NoError(t, err)
	assert.Less(t, time.Since(start), time.Minute)
	assert.False(t, r.OK)
	assert.True(t, r.Over)
	type row struct {
		verdict                 string
		passed, failed, skipped int
		endings                 int
	}
	got := map[string]row{}
	for _, s := range readReport(t, dir).Steps {
		got[s.Step] = row{s.Verdict(), s.Passed, s.Failed, s.Skipped, len(s.Endings)}
	}
	slow := got["slow"]
	assert.Greater(t, slow.passed, 20)
	assert.Equal(t, "cut off", slow.verdict)
	assert.Equal(t, "hung", got["shut"].verdict)
	delete(got, "slow")
	delete(got, "shut")
	assert.Equal(t, map[string]row{
		"about": {"passed", 1, 0, 0, 0}, "good": {"passed", 2, 0, 1, 0}, "wrong": {"FAILED", 1, 2, 0, 0},
		"crash": {"FAILED", 2, 0, 0, 1},
		"hang":  {"FAILED", 1, 0, 0, 1}, "lost": {"FAILED", 2, 0, 0, 1}, "broken": {"broken", 0, 0, 0, 0},
		"absent": {"not here", 0, 0, 0, 0},
		"orphan": {"passed", 1, 0, 0, 0}, "noise": {"passed", 1, 0, 0, 0}, "long": {"FAILED", 0, 1, 0, 0},
		"ends": {"crashed", 1, 0, 0, 1},
	}, got)
	at := func(name string) *Result { return &r.Steps[r.at(name)] }
	assert.Equal(t, Ending{Crashed, "crash/2", "a driver's last words"}, at("crash").Endings[0])
	assert.Equal(t, Hung, at("hang").Endings[0].State)
	assert.Equal(t, "hang/1", at("hang").Endings[0].Check)
	assert.Equal(t, "lost/2", at("lost").Endings[0].Check)
	assert.Contains(t, at("wrong").Failures[1].Reason, "a panic")
	assert.Equal(t, map[string]int{"no such thing": 1}, at("good").Skips)
	assert.Equal(t, []Fact{{"a fact", "33"}}, at("good").Facts)
	assert.Equal(t, "it does not open a file", at("broken").Reason)

	text, err := os.ReadFile(filepath.Join(dir, markdownFile))
	require.NoError(t, err)
	for _, want := range []string{"two is three", "crashed during crash/2", "a driver's last words", "not of this device",
		"| good/rate |", "1 check: no such thing"} {
		assert.Contains(t, string(text), want)
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(html), "two is three")
	assert.Empty(t, running(t, "sleep 1003"), "what a process started ends with it")

	logs := unpack(filepath.Join(dir, logsFile))
	assert.Contains(t, string(logs["crash.log"]), "a driver's last words")
	assert.Contains(t, string(logs["slow.jsonl"]), `"slow/7"`)
	assert.Contains(t, string(logs["noise.log"]), "[...]")
	assert.Contains(t, string(logs["noise.jsonl"]), "not a record")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 3, "nothing else is left in the folder")
}

// running lists the processes with a command line.
func running(t *testing.T, line string) (pids []string) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range dirs {
		text, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " ")) == line {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// TestDeadline: what no time is left for is named, and the run ends before its limit.
func TestDeadline(t *testing.T) {
	oddly(t)
	dir := t.TempDir()
	start := time.Now()
	r, err := Run(t.Context(), options(dir, 6*time.Second, "slow", "orphan", "noise"))
	require.NoError(t, err)
	assert.Less(t, time.Since(start), 6*time.Second)
	var told []string
	for _, s := range r.Steps {
		told = append(told, s.Step)
		assert.NotEqual(t, "not begun", s.Reason)
	}
	assert.Equal(t, []string{"about", "orphan", "slow", "noise"}, told)
	r, err = Run(t.Context(), options(t.TempDir(), 3*time.Second))
	require.NoError(t, err)
	last := r.Steps[len(r.Steps)-1]
	assert.Equal(t, NotRun, last.State)
	assert.Equal(t, "no time was left", last.Reason)
	assert.False(t, r.OK, "what was not run was not shown")
}

// TestInterrupted: a context that ends is followed at once, and what was shown is in the report.
func TestInterrupted(t *testing.T) {
	oddly(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	opt := options(dir, time.Minute, "orphan", "slow", "noise")
	opt.Progress = func(p Progress) {
		if p.Doing == "slow/5" {
			cancel()
		}
	}
	start := time.Now()
	r, err := Run(ctx, opt)
	require.ErrorIs(t, err, context.Canceled)
	assert.Less(t, time.Since(start), 20*time.Second)
	assert.False(t, r.Over)
	disk := readReport(t, dir)
	assert.Equal(t, 1, disk.Steps[disk.at("orphan")].Passed)
	assert.GreaterOrEqual(t, disk.Steps[disk.at("slow")].Passed, 4)
	assert.Equal(t, "interrupted", disk.Steps[disk.at("noise")].Reason)
}

// TestParentKilled: what was shown by then is on disk, and no process stays.
func TestParentKilled(t *testing.T) {
	oddly(t)
	dir := t.TempDir()
	cmd := again("parent", dir, "orphan", "slow", "good")()
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir()) // which the killed parent leaves behind
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, jsonFile))
		var r Report
		return err == nil && json.Unmarshal(text, &r) == nil && r.at("slow") >= 0 && r.Steps[r.at("slow")].Passed > 0
	}, 30*time.Second, 20*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	r := readReport(t, dir)
	assert.False(t, r.Over)
	assert.Equal(t, NotRun, r.Steps[r.at("good")].State)
	assert.Equal(t, "passed", r.Steps[r.at("orphan")].Verdict())
	assert.Contains(t, r.Headline(), "did not come to its end")
	assert.Equal(t, Cut, r.Steps[r.at("slow")].State)
	self, err := os.Executable()
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return len(running(t, self)) == 0 && len(running(t, "sleep 1003")) == 0 },
		5*time.Second, 20*time.Millisecond)
}

// TestFailed: a second run repeats what the first did not show, and keeps the rest.
func TestFailed(t *testing.T) {
	oddly(t)
	dir := t.TempDir()
	first, err := Run(t.Context(), options(dir, 30*time.Second, "good", "wrong", "absent"))
	require.NoError(t, err)
	opt := options(dir, 20*time.Second)
	opt.Failed = true
	second, err := Run(t.Context(), opt)
	require.NoError(t, err)
	good, wrong := second.Steps[second.at("good")], second.Steps[second.at("wrong")]
	assert.True(t, good.Earlier)
	assert.Equal(t, 2, good.Passed)
	assert.False(t, wrong.Earlier)
	assert.True(t, wrong.Begun.After(first.Steps[first.at("wrong")].Begun))
	logs := unpack(filepath.Join(dir, logsFile))
	assert.Contains(t, string(logs["good.jsonl"]), `"good/3"`)
	assert.Contains(t, string(logs["wrong.jsonl"]), `"wrong/3"`)
	assert.FileExists(t, filepath.Join(dir, earlierFile))

	// The results of another device are not kept, though it has the same name.
	other := *second
	other.About = &About{Info: runtime.Info{Simulated: true}}
	require.NoError(t, file.Replace(filepath.Join(dir, jsonFile), other.writeJSON))
	third, err := Run(t.Context(), opt)
	require.NoError(t, err)
	assert.Negative(t, third.at("good"))
	assert.Contains(t, third.Note, earlierFile)
	assert.Empty(t, second.Note)
	assert.False(t, second.OK)

	opt.Device = "cpu:reference"
	_, err = Run(t.Context(), opt)
	assert.ErrorIs(t, err, ErrUsage)
	require.NoError(t, os.WriteFile(filepath.Join(dir, jsonFile), []byte(`{"schema": "another"}`), 0o644))
	_, err = Run(t.Context(), opt)
	assert.ErrorContains(t, err, "no report of concord verify")
	text, err := os.ReadFile(filepath.Join(dir, jsonFile))
	require.NoError(t, err)
	assert.Equal(t, `{"schema": "another"}`, string(text), "it stays as it was")
}

// TestKeep: what was not run is not forgotten by a run of other steps.
func TestKeep(t *testing.T) {
	oddly(t)
	r := &runner{report: &Report{About: &About{}, Steps: []Result{{Step: odd[0].Name, State: NotRun}}}, logs: &archive{}}
	r.keep(&Report{About: &About{}, Steps: []Result{{Step: "good", State: NotRun, Reason: "no time was left"}}})
	r.giveUp("another reason")
	require.Len(t, r.report.Steps, 2)
	assert.Equal(t, Result{Step: "good", State: NotRun, Reason: "no time was left", Earlier: true}, r.report.Steps[1])
	assert.Equal(t, []string{odd[0].Name, "good"}, r.report.open())
}

// TestLastWords: the line that says why a process ended is not lost among stacks and registers.
func TestLastWords(t *testing.T) {
	l := (&archive{}).log("x")
	fmt.Fprint(l, strings.Repeat("before\n", 30))
	assert.Equal(t, 15, strings.Count(l.lastWords(), "before"))
	fmt.Fprint(l, "fatal error: the first\n"+strings.Repeat("stack\n", 50)+"terminate called\nSIGABRT: abort\n"+
		strings.Repeat("r9 0x73\n", 50))
	assert.Regexp(t, `^(stack\n){2}terminate called\nSIGABRT: abort\n(r9 0x73\n?){11}$`, l.lastWords())
}

// TestNothingLeft: if everything passed, there is nothing to repeat.
func TestNothingLeft(t *testing.T) {
	oddly(t)
	dir := t.TempDir()
	r, err := Run(t.Context(), options(dir, 20*time.Second, "good"))
	require.NoError(t, err)
	assert.True(t, r.OK)
	opt := options(dir, 20*time.Second)
	opt.Failed = true
	_, err = Run(t.Context(), opt)
	assert.ErrorIs(t, err, ErrNothing)
	_, err = Run(t.Context(), options(dir, 20*time.Second, "god"))
	assert.ErrorIs(t, err, ErrUsage)
	assert.ErrorContains(t, err, "good")
}

// TestClock: steps get their parts, what is left over goes to the next, and nobody gets what is not there.
func TestClock(t *testing.T) {
	list := []Step{{Budget: 30 * time.Second}, {Budget: 60 * time.Second}, {Budget: 10 * time.Second}}
	start := time.Now()
	c := newClock(start, 110*time.Second, list)
	assert.InDelta(t, 30, c.budget(start, list[0]).Seconds(), 0.01)
	c.used(30*time.Second, 10*time.Second)
	assert.InDelta(t, 80, c.budget(start.Add(10*time.Second), list[1]).Seconds(), 0.01)
	c.used(80*time.Second, 80*time.Second)
	assert.InDelta(t, 10, c.budget(start.Add(90*time.Second), list[2]).Seconds(), 0.01)
	assert.Zero(t, c.budget(start.Add(99*time.Second), list[2]))
	list[0].Least = 15 * time.Second
	assert.InDelta(t, 15, newClock(start, 20*time.Second, list).budget(start, list[0]).Seconds(), 0.01,
		"however short the run")
	assert.InDelta(t, 4, newClock(start, time.Hour, list).scale, 0.01, "nobody waits for hours for what takes seconds")
	total := time.Duration(0)
	for _, s := range steps {
		total += s.Budget
	}
	assert.LessOrEqual(t, total+spare, Full)
}

// TestPlan: names are unique, and can be typed.
func TestPlan(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range steps {
		assert.Regexp(t, `^[a-z]+$`, s.Name)
		assert.False(t, seen[s.Name] || s.Name == "failed" || s.Name == onceStep, s.Name)
		assert.NotEmpty(t, s.Title)
		assert.NotEmpty(t, s.Area)
		seen[s.Name] = true
	}
	assert.Len(t, names(steps), len(seen))
}
