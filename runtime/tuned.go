package runtime

// The choices of a device: those that were measured on this machine, pinned, or shipped.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
)

// Choices returns the choices of the device, the table that its values are from, and the values.
func (d *Device) Choices() *choice.State { return d.core.choices }

// choicesOf returns the choices of a device: those that its backend reads, and those of packages that are no backend.
func (s *Session) choicesOf(info *Info, d driver.Device) *choice.State {
	backends := slices.Concat(s.backends(), driver.Backends())
	list := slices.DeleteFunc(choice.All(), func(c *choice.Choice) bool {
		room, _, _ := strings.Cut(c.Name, ".")
		return slices.ContainsFunc(backends, func(b driver.Backend) bool { return b.Name() == room })
	})
	tunable, ok := d.(driver.Tunable)
	if !ok {
		return choice.NewState(list, info.Backend+" "+info.Name, info.DriverVersion, func(*choice.Set) {})
	}
	for _, c := range tunable.Choices() {
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *choice.Choice) int { return strings.Compare(a.Name, b.Name) })
	return choice.NewState(list, tunable.TunedFor(), info.DriverVersion, tunable.Choose)
}

// tune gives a device that was opened the table that it uses. The error is that of a pinned table that cannot be
// read, or has values that no device can use, and with Config.Strict of one that is for another device. Otherwise such
// a table has no effect, and the process is warned.
func (c *core) tune() error {
	t, err := c.table()
	if err == nil {
		err = c.choices.Use(t)
	}
	if err != nil {
		return c.tuneError(err)
	}
	if t != nil {
		c.session.debug(1, "tuned", "device", c.info.ID, "table", c.choices.Table())
	}
	return nil
}

func (c *core) tuneError(err error) error {
	if errors.Is(err, choice.ErrInvalid) || errors.Is(err, choice.ErrOther) {
		err = fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	return &OpError{Backend: c.info.Backend, Device: c.info.ID, Op: "tune", Err: err}
}

// table returns the table that a device uses, or nil if it has the defaults.
func (c *core) table() (*choice.Table, error) {
	switch name := c.session.cfg.Tune; name {
	case "off":
		return nil, nil
	case "", driver.TuneFirst:
		if t := c.kept(); t != nil {
			return t, nil
		}
		return c.carried(), nil
	default:
		t, err := pinned(name)
		if err != nil {
			return nil, err
		}
		if err := c.choices.Fits(t); err != nil {
			return nil, c.unpinned(name, err)
		}
		return c.held(t, name), nil
	}
}

// toldUnpinned has the devices and tables of which this process has been warned.
var toldUnpinned sync.Map

// unpinned says that a pinned table does not apply to the device, which has the defaults. The error is that of
// Config.Strict. Nothing is said of devices without choices of their own, such as the float64 reference.
func (c *core) unpinned(name string, reason error) error {
	if tunable, ok := c.drv.(driver.Tunable); ok && len(tunable.Choices()) == 0 {
		return nil
	}
	if c.session.cfg.Strict {
		return fmt.Errorf("CONCORD_TUNE=%s, refused by CONCORD_STRICT=1: %w", name, reason)
	}
	if _, told := toldUnpinned.LoadOrStore([2]string{c.info.ID, name}, true); !told {
		slog.Warn("concord: the pinned table does not apply to the device, which has the defaults", "device", c.info.ID,
			"table", name, "reason", reason)
	}
	return nil
}

// held returns what a table has for the choices of the device.
func (c *core) held(t *choice.Table, name string) *choice.Table {
	held, changed := c.choices.Held(t)
	if changed != nil {
		c.session.debug(1, "values were left out", "device", c.info.ID, "table", name, "reason",
			strings.Join(changed, "; "))
	}
	return held
}

// kept returns the table that was measured on this machine, or nil. A file that is damaged, that others could have
// written, or that does not hold for this device or version, is none.
func (c *core) kept() *choice.Table {
	dir, name := c.tunedFile()
	if dir == "" {
		return nil
	}
	var t *choice.Table
	text, err := file.Kept(dir, name)
	if err == nil {
		t, err = choice.Parse(text)
	}
	if err == nil {
		err = c.choices.Check(t)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.session.debug(1, "not tuned", "device", c.info.ID, "table", filepath.Join(dir, name), "reason", err)
		}
		return nil
	}
	return c.held(t, filepath.Join(dir, name))
}

// carried returns the table for a device that the program's bundles have, or else the newest that comes with Concord;
// nil if there is none.
func (c *core) carried() *choice.Table {
	tables := choice.Shipped()
	if bundles := c.session.cfg.Bundles; bundles != nil {
		var own []*choice.Table
		// What cannot be read is not there.
		_ = fs.WalkDir(bundles, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".json" {
				return nil
			}
			if f, err := bundles.Open(name); err == nil {
				defer f.Close()
				if t, err := choice.Read(f); err == nil {
					own = append(own, t)
				}
			}
			return nil
		})
		tables = append(own, tables...)
	}
	for _, t := range tables {
		if c.choices.Check(t) == nil {
			return t
		}
	}
	return nil
}

// pinned reads the table that the configuration names.
func pinned(name string) (*choice.Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("CONCORD_TUNE, Config.Tune: %q is neither off nor %s nor the file of a table: %w: %w", name,
			driver.TuneFirst, ErrInvalidArgument, err)
	}
	defer f.Close()
	t, err := choice.Read(f)
	if err != nil {
		return nil, fmt.Errorf("CONCORD_TUNE, Config.Tune: %s: %w: %w", name, driver.ErrFormat, err)
	}
	return t, nil
}

// tunedFile returns the directory and the file of the table that was measured on this machine; "" if nothing is kept.
func (c *core) tunedFile() (dir, name string) {
	if dir = cacheDir(c.session.cfg); dir == "" {
		return "", ""
	}
	h := sha256.New()
	for _, f := range []string{c.choices.TunedFor(), c.info.Backend, c.info.DriverVersion} {
		fmt.Fprintf(h, "%d %s\n", len(f), f)
	}
	return filepath.Join(dir, "tuned"), hex.EncodeToString(h.Sum(nil)) + ".json"
}

// KeepTuned makes a table the device's own from now on, nil a table of Config.Bundles or that comes with Concord or
// else the defaults, and keeps it on disk, in the directory tuned beside the kernel cache, for sessions to come; with
// the cache off only for this one. A session whose configuration names a table, or none, does not look there. It may
// be called while work runs. It replaces what was kept: a caller that adds to TuneTarget().Tuned() holds Lock of
// package runtime/tune, so that no other process keeps something in between. Values of operations whose choices have
// changed since the table was made are left out, see choice.Table.Held. The error is ErrInvalidArgument if the table is
// not for the device or has a value outside of its range, and otherwise that of writing the file, after which the
// device uses what it did.
func (d *Device) KeepTuned(ctx context.Context, t *choice.Table) error {
	c, err := d.use(ctx, "tune")
	if err != nil {
		return err
	}
	if err := c.choices.Check(t); err != nil {
		return c.tuneError(err)
	}
	if t != nil {
		t, _ = c.choices.Held(t)
	}
	c.keeping.Lock() // so that the file has the table in use
	defer c.keeping.Unlock()
	if dir, name := c.tunedFile(); dir != "" {
		if err := replace(dir, name, t); err != nil {
			return c.tuneError(err)
		}
	}
	if t == nil {
		t = c.carried()
	}
	return c.choices.Use(t)
}

// notesOf returns the name of a tuner's notes beside a table, which say what it has tried.
func notesOf(table string) string { return strings.TrimSuffix(table, ".json") + ".tried" }

// replace writes a table, or removes what was written before, with the tuner's notes.
func replace(dir, name string, t *choice.Table) error {
	if t == nil {
		var errs []error
		for _, n := range []string{name, notesOf(name)} {
			if err := os.Remove(filepath.Join(dir, n)); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	var text bytes.Buffer
	if err := t.Write(&text); err != nil {
		return err
	}
	return file.Keep(dir, name, text.Bytes())
}

// mostOffers is of how many launches of a kernel a tuner is told: the first ones, so that the others cost nothing.
const mostOffers = 1000

// toldNoTuner is for the warning that Config.Tune "first" has no effect.
var toldNoTuner sync.Once

// tuneFirst starts the tuner of Config.Tune.
func (s *Session) tuneFirst() error {
	if s.cfg.Tune != driver.TuneFirst {
		return nil
	}
	t, err := driver.NewTuner(&s.cfg)
	if errors.Is(err, ErrUnsupported) && !s.cfg.Strict {
		toldNoTuner.Do(func() { slog.Warn("concord: nothing is tuned at its first use", "reason", err) })
		return nil
	}
	s.tuner = t
	return err
}

// offer tells the session's tuner of the launch that was queued.
func (s *Stream) offer(k *Kernel) {
	t := s.core.session.tuner
	if t == nil || k.offered.Load() >= mostOffers {
		return
	}
	if k.offered.Add(1); !t.Launched(tuneTarget{s.core}, k.Unit(), k.decl.Name, &s.spec) {
		k.offered.Store(mostOffers)
	}
}

// TuneTarget returns the device as a tuner sees it: with what is kept for it. It may be used after the device was
// closed.
func (d *Device) TuneTarget() driver.TuneTarget { return tuneTarget{d.core} }

// tuneTarget is a device as a tuner sees it.
type tuneTarget struct{ *core }

func (t tuneTarget) ID() string             { return t.key }
func (t tuneTarget) Choices() *choice.State { return t.choices }

// TunedFiles implements driver.TuneTarget.
func (t tuneTarget) TunedFiles() (dir, table, notes string) {
	if dir, table = t.tunedFile(); dir == "" {
		return "", "", ""
	}
	return dir, table, notesOf(table)
}

// Tuned implements driver.TuneTarget.
func (t tuneTarget) Tuned() *choice.Table {
	return t.kept()
}

// Carried implements driver.TuneTarget.
func (t tuneTarget) Carried() *choice.Table { return t.carried() }

// Keep implements driver.TuneTarget.
func (t tuneTarget) Keep(table *choice.Table) (used bool, err error) {
	if err := t.choices.Check(table); err != nil {
		return false, t.tuneError(err)
	}
	t.keeping.Lock()
	defer t.keeping.Unlock()
	dir, name := t.tunedFile()
	if dir == "" {
		return false, nil
	}
	if err := replace(dir, name, table); err != nil {
		return false, t.tuneError(err)
	}
	if !t.keepsBits(table) || !t.enter() {
		return false, nil
	}
	defer t.leave()
	return true, t.choices.Use(table)
}

// keepsBits reports whether the values of a table differ from those in use only in choices that the backend reads at
// each launch and that do not change the order of rounding.
func (t tuneTarget) keepsBits(table *choice.Table) bool {
	set, err := table.Set()
	if err != nil {
		return false
	}
	var own []*choice.Choice
	if tunable, ok := t.drv.(driver.Tunable); ok {
		own = tunable.Choices()
	}
	return !slices.ContainsFunc(t.choices.Choices(), func(c *choice.Choice) bool {
		return set.Of(c) != t.choices.Of(c) && (c.Rounds || !slices.Contains(own, c))
	})
}
