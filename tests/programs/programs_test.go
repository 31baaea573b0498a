package programs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// Variables for a run: PROGRAMS_TIME (its length), PROGRAMS_SEED (the first seed, and without a
// time the only one) and PROGRAMS_TARGETS (names; each of these targets runs every program).
const variableTime, variableSeed, variableTargets = "PROGRAMS_TIME", "PROGRAMS_SEED", "PROGRAMS_TARGETS"

// TestMain becomes a target's process if the environment names a target.
func TestMain(m *testing.M) {
	name := os.Getenv(variableTarget)
	if name == "" {
		os.Exit(m.Run())
	}
	dir, err := filepath.Abs(root)
	if err == nil {
		err = fmt.Errorf("no target %s", name)
		for _, t := range append(Targets(dir), planted...) {
			if t.Name == name {
				err = Serve(t)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// here lists the targets of this machine. Fewer than two skip the test.
func here(t *testing.T) (all []*Target, named bool) {
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	only := strings.Fields(strings.ReplaceAll(os.Getenv(variableTargets), ",", " "))
	required := strings.Split(os.Getenv("CONCORD_REQUIRE"), ",")
	var absent []string
	found := map[string]bool{}
	for _, target := range Targets(dir) {
		if len(only) > 0 && !slices.Contains(only, target.Name) || len(only) == 0 && target.Named {
			continue
		}
		if reason := Absent(target, dir); reason != "" {
			absent = append(absent, target.Name+": "+reason)
			continue
		}
		found[target.Backend] = true
		all = append(all, target)
	}
	for _, a := range absent {
		t.Log("not here: ", a)
	}
	for _, r := range required {
		if r = strings.TrimSpace(r); r != "" && len(only) == 0 {
			assert.True(t, found[r], "CONCORD_REQUIRE names %s", r)
		}
	}
	if len(all) < 2 {
		t.Skip("nothing to compare with: ", strings.Join(absent, "; "))
	}
	return all, len(only) > 0
}

// fixedSeeds is the number of programs that every run of the tests tries.
const fixedSeeds = 8

// TestPrograms compares the results of this machine's targets.
func TestPrograms(t *testing.T) {
	all, every := here(t)
	var first uint64
	var limit time.Duration
	count := uint64(fixedSeeds)
	if testing.Short() {
		count = 2
	}
	if v := os.Getenv(variableTime); v != "" {
		var err error
		limit, err = time.ParseDuration(v)
		require.NoError(t, err)
		first, count = uint64(time.Now().UnixNano())>>10%1e9*1e3, 1<<62
	}
	if v := os.Getenv(variableSeed); v != "" {
		var err error
		first, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
		if limit == 0 {
			count, every = 1, true
		}
	}
	t.Logf("from seed %d on", first)
	c := &campaign{t: t, all: all, every: every, ran: map[string]Spent{}, begin: time.Now()}
	ctx := t.Context()
	if limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
		go c.report(ctx)
	}
	c.next.Store(first)
	var wg sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		wg.Go(func() { c.work(ctx, first+count) })
	}
	wg.Wait()
	t.Log(c.String())
	assert.NotZero(t, c.programs.Load())
}

// campaign is a run over many seeds.
type campaign struct {
	t                 *testing.T
	all               []*Target
	every             bool // every program runs on all targets
	next              atomic.Uint64
	programs, kernels atomic.Int64
	launches, lines   atomic.Int64
	differences       atomic.Int64
	alone             atomic.Int64 // number of differences in which a foreign target is alone
	begin             time.Time
	mu                sync.Mutex
	ran               map[string]Spent
}

func (c *campaign) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%v: %d programs, %d kernels, %d launches, %d lines, %d differences, %d of them one foreign "+
		"implementation alone; on %v",
		time.Since(c.begin).Round(time.Second), c.programs.Load(), c.kernels.Load(), c.launches.Load(), c.lines.Load(),
		c.differences.Load(), c.alone.Load(), c.ran)
}

// report prints the progress of a long run.
func (c *campaign) report(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fmt.Println(c)
		}
	}
}

// work tries seeds until there are none left, or the time is over.
func (c *campaign) work(ctx context.Context, end uint64) {
	pool := &Pool{}
	defer pool.Close()
	for ctx.Err() == nil {
		seed := c.next.Add(1) - 1
		if seed >= end {
			return
		}
		p := Generate(seed)
		d := pool.Try(p, c.targets(p))
		kernels, lines := p.counts()
		c.programs.Add(1)
		c.kernels.Add(int64(kernels))
		c.launches.Add(int64(len(p.Launches)))
		c.lines.Add(int64(lines))
		c.mu.Lock()
		for name, n := range pool.Ran {
			c.ran[name] = Spent{c.ran[name].Programs + n.Programs, c.ran[name].Time + n.Time}
			delete(pool.Ran, name)
		}
		c.mu.Unlock()
		if d != nil {
			c.differences.Add(1)
			c.found(pool, d)
		}
	}
}

// targets returns the targets for a program: all of them, or one and the base that it is compared
// with.
func (c *campaign) targets(p *Program) []*Target {
	all := slices.DeleteFunc(slices.Clone(c.all), func(t *Target) bool { return t.Rough && p.Hard })
	if c.every {
		return all
	}
	var bases []*Target
	for _, t := range all {
		if t.Base {
			bases = append(bases, t)
		}
	}
	if len(bases) == 0 {
		bases = all[:1]
	}
	base := bases[len(bases)-1] // the cheapest
	var others []*Target
	for _, t := range all {
		if t != base {
			others = append(others, slices.Repeat([]*Target{t}, t.Turns)...)
		}
	}
	if len(others) == 0 {
		return []*Target{base}
	}
	return []*Target{base, others[p.Seed/harder%uint64(len(others))]}
}

// found writes a program with a difference to files, whole and reduced. If a foreign target is
// alone, the difference is counted and only the whole program is kept.
func (c *campaign) found(pool *Pool, d *Difference) {
	dir := filepath.Join(root, "build", "programs")
	whole, small := filepath.Join(dir, fmt.Sprintf("%d.cl", d.Program.Seed)),
		filepath.Join(dir, fmt.Sprintf("%d.small.cl", d.Program.Seed))
	if !assert.NoError(c.t, os.MkdirAll(dir, 0o777)) {
		return
	}
	assert.NoError(c.t, os.WriteFile(whole, []byte(d.Program.Describe()), 0o666))
	pool.Ask(d, c.all)
	clear(pool.Ran)
	if d.Alone != nil {
		c.alone.Add(1)
		fmt.Printf("%s alone: %s\n", d.Alone.Name, d)
		return
	}
	limit := 3 * time.Minute
	if os.Getenv(variableTime) == "" && os.Getenv(variableSeed) == "" {
		limit = 20 * time.Second
	}
	words := d.String()
	fmt.Println("found:", words)
	d = Reduce(pool, d, limit)
	pool.Ask(d, c.all)
	clear(pool.Ran)
	text := "/* " + strings.ReplaceAll(d.String(), "*/", "* /") + " */\n" + d.Program.Describe()
	assert.NoError(c.t, os.WriteFile(small, []byte(text), 0o666))
	c.t.Errorf("%s\n%s has the program, %s less of it; again by: %s=%d make fuzz-programs", words, whole, small,
		variableSeed, d.Program.Seed)
}
