//go:build unix

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/driver"
)

// roles are what a process under a launcher can do.
var roles = map[string]func(ctx context.Context) error{
	"hello":        hello,
	"group":        group,
	"exchange":     exchanges,
	"panic":        panics,
	"length":       lengths,
	"abort":        aborts,
	"all":          collectives,
	"long":         long,
	"rate":         rate,
	"cut":          cut,
	"elsewhere":    elsewhere,
	"unequal":      unequal,
	"kept":         keeps,
	"hanging":      hanging,
	"stalled":      stalled,
	"train":        train,
	"train killed": dies,
	"train cut":    untilCut,
	"killed":       fate(killed, runtime.ErrDeviceLost),
	"stopped":      fate(stopped, runtime.ErrDeviceLost),
	"left":         fate(leave, runtime.ErrClosed),
	"cancelled":    fate(giveUp, context.Canceled),
	"broken":       fate(breakOff, runtime.ErrOutOfMemory),
}

// hello prints the rank of the process, the number of processes and their hosts, exchanges messages and adds the ranks.
func hello(ctx context.Context) error {
	j, err := Init(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("rank %d of %d on %s with %s\n", j.Rank(), j.Size(), j.Hosts()[j.Rank()], j.Library())
	if err := classes(j); err != nil {
		return err
	}
	if _, err := Init(ctx); !errors.Is(err, runtime.ErrInvalidArgument) {
		return fmt.Errorf("joined twice: %w", err)
	}
	if err := around(ctx, j); err != nil {
		return err
	}
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	g, err := cluster.Join(ctx, dev, j.Rank(), j.Size(), j)
	if err != nil {
		return err
	}
	if err := ranks(ctx, g); err != nil { // which closes the job
		return err
	}
	if err := dev.Close(); err != nil {
		return err
	}
	if err := j.Exchange(ctx, -1, nil, -1, nil); !errors.Is(err, runtime.ErrClosed) {
		return fmt.Errorf("an exchange after Close: %w", err)
	}
	return j.Close()
}

// classes checks the numbers of the library's classes of errors.
func classes(j *Job) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for class, kind := range j.lib.kinds {
		err := j.lib.check(test, class)
		says := map[error]string{runtime.ErrDimension: "(?i)trunc", runtime.ErrOutOfMemory: "(?i)mem",
			runtime.ErrInvalidArgument: "(?i)invalid|argument"}[kind]
		if !errors.Is(err, kind) || !regexp.MustCompile(says).MatchString(err.Error()) {
			return fmt.Errorf("instead of %w: %w", kind, err)
		}
	}
	return nil
}

// group adds the ranks of all.
func group(ctx context.Context) error {
	dev, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		return err
	}
	g, err := Group(ctx, dev)
	if err != nil {
		return err
	}
	return errors.Join(ranks(ctx, g), dev.Close())
}

// ranks adds the ranks of a group, and closes it.
func ranks(ctx context.Context, g *cluster.Group) error {
	m := g.Members()[0]
	b, err := runtime.Upload(ctx, m.Device(), []int32{int32(m.Rank())})
	if err != nil {
		return err
	}
	if err := m.AllReduce(ctx, nil, cluster.Sum, b, b); err != nil {
		return err
	}
	var sum [1]int32
	if err := m.Stream().Sync(ctx); err != nil {
		return err
	}
	if err := runtime.Read(ctx, b, sum[:]); err != nil {
		return err
	}
	if n := int32(g.Size()); sum[0] != n*(n-1)/2 {
		return fmt.Errorf("the sum of %d ranks is %d", n, sum[0])
	}
	b.Close()
	return g.Close()
}

// content is the byte at a place of a message.
func content(from, i, round int) byte { return byte(from*31 + i*7 + i>>9 + round) }

func fill(b []byte, from, round int) {
	for i := range b {
		b[i] = content(from, i, round)
	}
}

// exchanges makes a job that sends messages around.
func exchanges(ctx context.Context) error {
	j, err := Init(ctx)
	if err != nil {
		return err
	}
	return errors.Join(around(ctx, j), j.Close())
}

// around sends messages of many lengths around, by all distances, both ways and one way.
func around(ctx context.Context, j *Job) error {
	n := j.Size()
	for round, length := range []int{0, 1, 2, 17, 4099, 65537, pieceSize - 1, pieceSize, pieceSize + 1, 4*pieceSize + 13,
		3, 0} {
		for distance := range n {
			if length > 1<<20 && distance != 1%n {
				continue
			}
			to, from := (j.Rank()+distance)%n, (j.Rank()+n-distance)%n
			if j.Rank()%2 == 1 && round%3 == 2 { // odd ones are silent: their neighbours do not ask them
				to = -1
			}
			if from%2 == 1 && round%3 == 2 {
				from = -1
			}
			out, in := make([]byte, length), make([]byte, length)
			fill(out, j.Rank(), round)
			if err := j.Exchange(ctx, to, out, from, in); err != nil {
				return fmt.Errorf("length %d, distance %d: %w", length, distance, err)
			}
			want := make([]byte, length)
			if from >= 0 {
				fill(want, from, round)
			}
			if !bytes.Equal(want, in) {
				return fmt.Errorf("length %d, distance %d: other bytes than rank %d sent", length, distance, from)
			}
		}
	}
	if err := j.Exchange(ctx, n, nil, -1, nil); !errors.Is(err, runtime.ErrInvalidArgument) {
		return fmt.Errorf("rank %d: %w", n, err)
	}
	return nil
}

// elsewhere starts and ends MPI beside the package, which refuses both.
func elsewhere(context.Context) error {
	lib, err := load(os.Getenv("CONCORD_MPI_LIBRARY"))
	if err != nil {
		return err
	}
	_, n := lib.answer.at()
	for _, f := range []function{initThread, finalize} {
		if err := lib.call(f, 0, 0, serialized, n); err != nil {
			return err
		}
		if _, err := join(lib, Options{Timeout: standardTimeout}); !errors.Is(err, runtime.ErrUnsupported) {
			return fmt.Errorf("after MPI_%s of another part: %w", names[f], err)
		}
	}
	return nil
}

// unequal has processes that do not agree on the timeout.
func unequal(ctx context.Context) error {
	_, err := Options{Timeout: time.Hour + time.Duration(os.Getpid())}.Init(ctx)
	if !errors.Is(err, runtime.ErrInvalidArgument) {
		return fmt.Errorf("unequal timeouts: %w", err)
	}
	return nil
}

// keeps has a message that nobody receives. The library cannot take it back.
func keeps(ctx context.Context) error {
	j, err := Options{Timeout: 2 * time.Second}.Init(ctx)
	if err != nil {
		return err
	}
	if j.Rank() == 1 {
		for j.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return j.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	out := make([]byte, pieceSize)
	if err := j.Exchange(ctx, 1, out, -1, nil); !errors.Is(err, driver.ErrTimeout) {
		return fmt.Errorf("a message that nobody receives: %w", err)
	}
	if k := kept.Load(); k == nil || &k.out[0] != &out[0] {
		return errors.New("the memory of a message on its way was given back")
	}
	return j.Close()
}

// hanging has a library that does not end.
func hanging(ctx context.Context) error {
	j, err := Options{Timeout: time.Second}.Init(ctx)
	if err != nil {
		return err
	}
	c, err := cgo.Open("libc.so.6")
	if err != nil {
		return err
	}
	if j.lib.f[finalize], err = c.Lookup("pause"); err != nil {
		return err
	}
	ended := make(chan bool)
	for range 2 {
		go func() {
			_ = j.Close()
			j.mu.Lock()
			defer j.mu.Unlock()
			ended <- j.quiet
		}()
	}
	if one, other := <-ended, <-ended; !one || !other {
		return errors.New("a second Close does not wait for the first")
	}
	aborted := make(chan error, 1)
	go func() { aborted <- j.Abort(1) }()
	select {
	case err := <-aborted:
		if !errors.Is(err, runtime.ErrClosed) {
			return fmt.Errorf("Abort after Close: %w", err)
		}
		return nil
	case <-time.After(5 * time.Second):
		return errors.New("Abort waits for the library")
	}
}

// panics has a nil pointer after MPI was started, whose libraries like to catch signals. Several try to start it at
// once.
func panics(ctx context.Context) (err error) {
	type result struct {
		j   *Job
		err error
	}
	results := make(chan result)
	for range 2 {
		go func() {
			for {
				j, err := Init(ctx)
				if !errors.Is(err, runtime.ErrInvalidArgument) {
					results <- result{j, err}
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	first := <-results
	j, err := first.j, first.err
	if err != nil {
		return err
	}
	defer func() {
		if recover() == nil {
			err = errors.New("a nil pointer was read")
		}
		err = errors.Join(err, j.Close())
	}()
	var none *Options
	fmt.Println(none.Timeout)
	return nil
}

// aborts has one process end all others, which wait.
func aborts(ctx context.Context) error {
	j, err := Init(ctx)
	if err != nil {
		return err
	}
	if j.Rank() == 0 {
		if err := j.Abort(7); err != nil {
			return err
		}
	}
	time.Sleep(time.Minute)
	return nil
}

// lengths has messages that are shorter and longer than what the other process expects.
func lengths(ctx context.Context) error {
	j, err := Options{Timeout: 3 * time.Second}.Init(ctx)
	if err != nil {
		return err
	}
	other := 1 - j.Rank()
	out, in := make([]byte, 10), make([]byte, 10)
	if j.Rank() == 1 {
		length, _ := strconv.Atoi(os.Getenv("MPI_TEST_LENGTH"))
		out = make([]byte, length)
	}
	err = j.Exchange(ctx, other, out, other, in)
	if j.Rank() == 1 && err == nil { // its part is through
		err = j.Exchange(ctx, other, nil, other, nil)
	}
	if e, ok := errors.AsType[*cluster.MemberError](err); !ok || e.Rank != 1 {
		return fmt.Errorf("a wrong length: %w", err)
	}
	if j.Rank() == 0 && !errors.Is(err, runtime.ErrDimension) {
		return fmt.Errorf("a wrong length: %w", err)
	}
	return j.Close()
}

// fate returns a role in which something happens to one process while all use collectives. All others have to learn of
// it: in time, with its rank, and with an error of that kind, which later calls return at once.
func fate(what func(ctx context.Context, m *cluster.Member, j *Job) error, kind error) func(context.Context) error {
	return func(ctx context.Context) error {
		dev, err := runtime.Open(ctx, "cpu:0")
		if err != nil {
			return err
		}
		j, err := Options{Timeout: standardTimeout}.Init(ctx)
		if err != nil {
			return err
		}
		g, err := cluster.Join(ctx, dev, j.Rank(), j.Size(), j)
		if err != nil {
			return err
		}
		m, victim := g.Members()[0], g.Size()/2
		b, err := runtime.Alloc[float32](dev, 1_000_003)
		if err != nil {
			return err
		}
		for step := 0; ; step++ {
			if step == 20 && m.Rank() == victim {
				return what(ctx, m, j)
			}
			begin := time.Now()
			err = m.AllReduce(ctx, nil, cluster.Mean, b, b)
			if err == nil {
				continue
			}
			took := time.Since(begin)
			fmt.Printf("rank %d waited %v: %v\n", m.Rank(), took.Round(time.Millisecond), err)
			e, ok := errors.AsType[*cluster.MemberError](err)
			if !ok || e.Rank != victim || !errors.Is(err, kind) {
				return fmt.Errorf("at step %d, instead of %v of rank %d: %w", step, kind, victim, err)
			}
			if took > standardTimeout {
				return fmt.Errorf("it took %v, and has %v", took, standardTimeout)
			}
			begin = time.Now()
			if again := m.Barrier(ctx, nil); !errors.Is(again, err) {
				return fmt.Errorf("the next collective: %w", again)
			}
			if took := time.Since(begin); took > time.Second/2 {
				return fmt.Errorf("the next collective took %v", took)
			}
			b.Close()
			return g.Close()
		}
	}
}

func killed(context.Context, *cluster.Member, *Job) error {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// stopped is a process of which nothing is heard, though it has not ended, as behind a cable that is cut.
func stopped(_ context.Context, _ *cluster.Member, j *Job) error {
	j.mu.Lock()
	time.Sleep(standardTimeout + time.Second)
	j.quiet = true
	j.mu.Unlock()
	return nil
}

// stalled has a process that lives and takes no part, and others of which each waits for the one before, and the last
// of this chain for the longest time: all name the first.
func stalled(ctx context.Context) error {
	j, err := Options{Timeout: 3 * time.Second}.Init(ctx)
	if err != nil {
		return err
	}
	n := j.Size()
	victim := n / 2
	place := (j.Rank() + n - victim) % n
	if place == 0 {
		time.Sleep(6 * time.Second)
		err = j.Err()
	} else {
		time.Sleep(time.Duration(n-place) * 300 * time.Millisecond)
		ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
		defer cancel()
		err = j.Exchange(ctx, -1, nil, (j.Rank()+n-1)%n, make([]byte, 10))
	}
	if e, ok := errors.AsType[*cluster.MemberError](err); !ok || e.Rank != victim || !errors.Is(err, driver.ErrTimeout) {
		return fmt.Errorf("instead of that rank %d takes no part: %w", victim, err)
	}
	fmt.Println(err)
	return j.Close()
}

func leave(_ context.Context, m *cluster.Member, j *Job) error {
	_ = m.Group().Close()
	if err := j.Err(); !errors.Is(err, runtime.ErrClosed) {
		return fmt.Errorf("it was not told: %w", err)
	}
	return nil
}

// giveUp has a context that is cancelled while it waits for a message that nobody sends.
func giveUp(ctx context.Context, m *cluster.Member, _ *Job) error {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(300*time.Millisecond, cancel)
	b, err := runtime.Alloc[float32](m.Device(), 1)
	if err != nil {
		return err
	}
	if err := m.Recv(ctx, nil, (m.Rank()+1)%m.Size(), b); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cancelled: %w", err)
	}
	return m.Group().Close()
}

// breakOff tells of a failure that has nothing to do with messages.
func breakOff(_ context.Context, m *cluster.Member, _ *Job) error {
	_ = m.Fail(fmt.Errorf("no place for the weights: %w", runtime.ErrOutOfMemory))
	time.Sleep(time.Second)
	return m.Group().Close()
}
