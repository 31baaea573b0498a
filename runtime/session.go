package runtime

// A Session is one configuration with its discovered and opened devices. Most
// programs use the default one, through the functions of the package.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/runtime/profile"
)

// Session holds the shared state of the devices of one configuration: discovery, the kernel cache,
// the active device. It is safe for concurrent use.
type Session struct {
	cfg    Config
	active atomic.Int64 // merged index of the active device, or -1
	cache  func() *kernelcache.Cache

	trace     *profile.TraceFile          // for Config.Trace, or nil
	endTrace  func()                      // ends its recording
	listeners atomic.Pointer[[]*listener] // nil if nobody listens
	checker   atomic.Pointer[driver.Checker]
	tuner     driver.Tuner // for Config.Tune "first", or nil

	mu      sync.Mutex
	sights  map[string]*sight   // by Backend.Name
	open    map[string]*core    // by Info.ID
	opening map[string]*opening // by Info.ID
	warned  map[string]bool     // fallbacks already logged
	falls   int64
}

// New returns a session for a configuration; the environment provides the fields that cfg leaves
// unset. Close closes the devices that are still open.
func New(cfg Config) (*Session, error) {
	for _, v := range config.Variables() {
		_ = os.Getenv(v.Name) // the go command notes it: a cached test result depends on these variables
	}
	env, err := config.ParseEnv(os.Environ())
	if err != nil {
		return nil, err
	}
	warnOfMisspelt()
	cfg = config.Merge(cfg, env)
	if err := config.Check(&cfg); err != nil {
		return nil, err
	}
	if err := checkTraces(&cfg); err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, sights: map[string]*sight{}, open: map[string]*core{}, opening: map[string]*opening{},
		warned: map[string]bool{}}
	s.active.Store(-1)
	s.cache = sync.OnceValue(func() *kernelcache.Cache {
		return kernelcache.Open(cacheOptions(cfg))
	})
	if s.endTrace, err = s.traceToFile(); err != nil {
		return nil, err
	}
	err = s.tuneFirst()
	if err == nil {
		err = s.validate()
	}
	if err != nil {
		if s.tuner != nil {
			err = errors.Join(err, s.tuner.Close())
		}
		s.endTrace()
		return nil, err
	}
	return s, nil
}

// toldMisspelt has the misspelt variables of which this process has been warned.
var toldMisspelt sync.Map

// warnOfMisspelt logs each variable of the environment once that is likely to be a misspelt one of Concord's,
// which has no effect.
func warnOfMisspelt() {
	for _, name := range config.Unknown(os.Environ()) {
		if meant := config.Nearest(name); meant != "" {
			if _, told := toldMisspelt.LoadOrStore(name, true); !told {
				slog.Warn("concord: "+name+" is no setting of Concord and has no effect", "meant", meant)
			}
		}
	}
}

var defaultSession = sync.OnceValues(func() (*Session, error) { return New(Config{}) })

// Default returns the session of the package's functions, configured by the
// environment alone. A malformed variable is an error that names it.
func Default() (*Session, error) { return defaultSession() }

// Config returns the configuration in force, environment included.
func (s *Session) Config() Config { return s.cfg }

// Cache returns the session's kernel cache.
func (s *Session) Cache() *kernelcache.Cache { return s.cache() }

// Open opens a device of the default session. See Session.Open.
func Open(ctx context.Context, name string) (*Device, error) {
	s, err := Default()
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, name)
}

// Devices lists the devices of the default session in the order of preference.
func Devices(ctx context.Context) ([]Info, error) {
	s, err := Default()
	if err != nil {
		return nil, err
	}
	return s.Devices(ctx)
}

// Open opens a device by name: "auto", a backend ("cpu"), a backend and index
// ("opencl:0", "cpu:reference") or a merged index ("2"). "auto" is the active
// device if one was set, else Config.Device, else the first real GPU, else the
// CPU.
//
// Opening a device that is already open shares it; each Device is closed separately. A lost device
// is opened again, while earlier Devices of it stay lost. A name without a device is an error and
// never means another one. A device that exists and fails to open is replaced as Config.Fallback
// says, which is logged and returned by Device.Fallback.
//
// A device is opened with its own stream. If the backend cannot make one, Open returns the backend's
// error, which is ErrUnsupported if the backend has no streams.
//
// A simulated device ("sim-cuda:0") is opened only by its name.
//
// A name with a backend touches no driver but that backend's, unless another device has to stand
// in. Concurrent calls share a look at a backend and the opening of a device. A call that waits for
// another one to open the same device returns ErrTimeout when that takes twelve times
// Config.ProbeTimeout.
func (s *Session) Open(ctx context.Context, name string) (*Device, error) {
	if s == nil || s.cache == nil {
		return nil, fmt.Errorf("open %s: the session is not one of New: %w", name, ErrInvalidArgument)
	}
	if err := checkContext(ctx, "open "+name); err != nil {
		return nil, err
	}
	candidates, err := s.candidates(ctx, name)
	if err != nil {
		return nil, err
	}
	var causes []error
	for i := 0; i < len(candidates); i++ {
		c, err := s.acquire(ctx, candidates[i])
		if err == nil {
			d := &Device{core: c}
			if len(causes) > 0 {
				d.fallback = errors.Join(causes...)
				s.FellBack(c.info.ID, "open", d.fallback)
			}
			return d, nil
		}
		if ctx.Err() != nil || !s.MayFallBack(err) {
			return nil, errors.Join(append(causes, err)...)
		}
		causes = append(causes, err)
		if i == 0 {
			if candidates, err = s.standIns(ctx, candidates); err != nil {
				return nil, errors.Join(append(causes, err)...)
			}
		}
	}
	if len(causes) == 1 {
		return nil, causes[0]
	}
	return nil, fmt.Errorf("%w: %w", driver.ErrAllBackendsExhausted, errors.Join(causes...))
}

// standIns appends the stand-ins of the first candidate, which failed to open.
func (s *Session) standIns(ctx context.Context, candidates []Info) ([]Info, error) {
	if len(candidates) > 1 || s.describe(candidates[0].Backend).Host {
		return candidates, nil
	}
	all, err := s.Devices(ctx)
	if err != nil {
		return nil, err
	}
	return append(candidates, s.below(candidates[0], all)...), nil
}

// MayFallBack reports whether another device may do work that failed with err: Config.Fallback does not forbid it, and
// the error is one of the device, which another need not have.
func (s *Session) MayFallBack(err error) bool {
	return s.cfg.Fallback != Require && driver.OfDevice(err)
}

// FellBack is for packages whose work moves from a device where it failed to another, called to: it counts the
// fallback, tells observers, and logs it once for each operation and reason.
func (s *Session) FellBack(to, op string, cause error) {
	s.mu.Lock()
	s.falls++
	key := to + "\x00" + op + "\x00" + cause.Error()
	first := !s.warned[key]
	s.warned[key] = true
	s.mu.Unlock()
	if s.observed() {
		s.told(profile.Event{Kind: profile.Fallback, Name: op, Device: to, Detail: cause.Error()}, driver.Now())
	}
	if first {
		slog.Warn("concord: fell back", "to", to, "op", op, "reason", cause)
	}
}

// Fallbacks returns how often a device stood in for the requested one, when it was opened or for one operation.
func (s *Session) Fallbacks() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.falls
}

// opening is the state of a device that a call is opening.
type opening struct {
	over  chan struct{} // closed when the call has opened it, or failed to
	since time.Time
}

// acquire returns the open core of a device, opening it if need be.
func (s *Session) acquire(ctx context.Context, info Info) (*core, error) {
	if info.Fake {
		return nil, &OpError{Backend: info.Backend, Device: info.ID, Op: "open", Err: driver.ErrFakeDevice}
	}
	mine := &opening{over: make(chan struct{}), since: time.Now()}
	var dead *core
	for {
		s.mu.Lock()
		c := s.open[info.ID]
		if c != nil && c.checkLost() == nil {
			c.handles++
			s.mu.Unlock()
			return c, nil
		}
		other := s.opening[info.ID]
		if other == nil {
			s.opening[info.ID] = mine
			if dead = c; dead != nil {
				delete(s.open, info.ID)
			}
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		if err := s.await(ctx, info, other); err != nil {
			return nil, err
		}
	}
	// Outside the lock, so that a driver that hangs does not block other devices.
	if dead != nil { // first, as the process may have one context for the lost device and the new one
		if err := dead.close(); err != nil {
			s.debug(1, "closing a lost device", "device", info.ID, "error", err)
		}
	}
	c, err := s.openCore(ctx, info)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.opening, info.ID)
	close(mine.over)
	if err != nil {
		return nil, err
	}
	s.open[info.ID] = c
	return c, nil
}

// await waits until another call has opened a device, or failed to.
func (s *Session) await(ctx context.Context, info Info, other *opening) error {
	limit := s.cfg.OpenLimit()
	timer := time.NewTimer(limit - time.Since(other.since))
	defer timer.Stop()
	select {
	case <-other.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return &OpError{Backend: info.Backend, Device: info.ID, Op: "open", Err: driver.ErrTimeout,
			Detail: fmt.Sprintf("another call has been opening it for more than %v", limit)}
	}
}

func (s *Session) openCore(ctx context.Context, info Info) (*core, error) {
	b := s.backend(info.Backend)
	if b == nil {
		return nil, &OpError{Backend: info.Backend, Device: info.ID, Op: "open", Err: ErrNoDevice}
	}
	drv, err := b.Open(ctx, info.NativeIndex, &s.cfg)
	if err == nil && drv == nil {
		err = &OpError{Backend: info.Backend, Device: info.ID, Op: "open",
			Detail: "the backend returned neither a device nor an error", Err: ErrUnsupported}
	}
	if err != nil {
		return nil, err
	}
	c, err := newCore(s, info, drv)
	if err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	c.recallPipelines()
	if err := c.tune(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if s.trace != nil {
		s.trace.AddRoof(info.ID, c.keptRoof(ctx))
	}
	s.debug(1, "opened", "device", info.ID, "name", info.Name)
	return c, nil
}

// forget makes the next Open of a device open it anew.
func (s *Session) forget(c *core) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[c.key] == c {
		delete(s.open, c.key)
	}
}

// release gives back one handle of a core and closes it with the last one.
func (s *Session) release(c *core) error {
	s.mu.Lock()
	c.handles--
	last := c.handles == 0
	if last && s.open[c.key] == c { // after Session.Close another core may have taken its place
		delete(s.open, c.key)
	}
	s.mu.Unlock()
	if !last {
		return nil
	}
	return c.close()
}

// Close ends what is tuned beside the program, and closes every device that is still open and the kernel cache. It may
// be called twice.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.tuner != nil { // its processes use the devices, too
		errs = append(errs, s.tuner.Close())
	}
	if c := s.checker.Swap(nil); c != nil {
		errs = append(errs, (*c).Close())
	}
	s.mu.Lock()
	cores := make([]*core, 0, len(s.open))
	for _, c := range s.open {
		cores = append(cores, c)
	}
	clear(s.open)
	s.mu.Unlock()
	slices.SortFunc(cores, func(a, b *core) int { return strings.Compare(a.key, b.key) })
	for _, c := range cores {
		errs = append(errs, c.close())
	}
	if s.cache != nil {
		errs = append(errs, s.cache().Close())
		s.endTrace()
	}
	return errors.Join(errs...)
}

func (s *Session) backends() []driver.Backend {
	if s.cfg.Backends != nil {
		return s.cfg.Backends
	}
	return driver.Backends()
}

func (s *Session) backend(name string) driver.Backend {
	for _, b := range s.backends() {
		if b.Name() == name {
			return b
		}
	}
	return nil
}

// descriptions iterates over every name of a backend with its description: the session's backends,
// then the reserved names without a backend.
func (s *Session) descriptions() iter.Seq2[string, driver.Description] {
	return func(yield func(string, driver.Description) bool) {
		for _, b := range s.backends() {
			if !yield(b.Name(), driver.Describe(b)) {
				return
			}
		}
		for name, d := range driver.Reserved() {
			if s.backend(name) == nil && !yield(name, d) {
				return
			}
		}
	}
}

// describe returns the description of the backend with that name.
func (s *Session) describe(name string) driver.Description {
	for known, d := range s.descriptions() {
		if known == name {
			return d
		}
	}
	return driver.Description{Title: name}
}

// debug logs at a level of CONCORD_DEBUG.
func (s *Session) debug(level int, msg string, args ...any) {
	if s.cfg.Debug >= level {
		slog.Info("concord: "+msg, args...)
	}
}
