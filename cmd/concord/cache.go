package main

// concord cache: the contents of the kernel cache on disk.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Show, verify, clear, export and import the cache of compiled kernels",
		Long: `The kernel cache keeps compiled programs, so that each is compiled once per machine.
CONCORD_CACHE_DIR names its directory; with off nothing is kept on disk. CONCORD_CACHE_SIZE
limits its size; the least recently used programs are removed first.`,
		Example: `  concord cache stats
  concord cache verify --json
  concord cache export kernels.bundle`,
		Args: cobra.NoArgs,
		RunE: needsCommand,
	}
	cmd.AddCommand(
		a.cachePart("stats", "Say where the cache is and how much it holds", a.cacheStats),
		a.cachePart("list", "List the compiled programs on disk", a.cacheList),
		a.cachePart("verify", "Read every entry, delete the damaged ones; fails if there were any", a.cacheVerify),
		a.cachePart("clear", "Delete every entry", a.cacheClear),
		a.cacheFile("export", "Write every entry to one file, a bundle",
			`Export writes every entry to FILE, a bundle: for concord cache import on machines with
the same devices and drivers, and to be built into programs (runtime.Config.Bundles).`, a.cacheExport),
		a.cacheFile("import", "Keep the entries of a bundle, marked as imported",
			`Import keeps the entries of FILE, which concord cache export wrote. Programs use one
only where device, driver and compiler are those it was made for; on a machine without
a C++ compiler, cpu:0 uses what was made for the same system and processor features.
A bundle is code that will run: import only what you would run.`, a.cacheImport),
	)
	return cmd
}

func (a *app) cachePart(name, short string, work func(context.Context, *runtime.Session) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.ExactArgs(0),
		Example: "  concord cache " + name + "\n  concord cache " + name + " --json",
	}
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		s, err := a.open(exactly)
		if err != nil {
			return err
		}
		if c, err := stateOf(s); err == nil && c.Dir == "" && !a.json && name != "stats" {
			fmt.Fprintln(a.stdout, c)
			return nil
		}
		return work(ctx, s)
	})
	return cmd
}

// cacheFile is a subcommand that takes a file and needs the cache to be on disk.
func (a *app) cacheFile(name, short, long string, work func(ctx context.Context, s *runtime.Session,
	file string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " FILE", Short: short, Long: long, Args: cobra.ExactArgs(1),
		Example: "  concord cache " + name + " kernels.bundle",
	}
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, args []string) error {
		s, err := a.open(exactly)
		if err != nil {
			return err
		}
		c, err := stateOf(s)
		if err != nil {
			return err
		}
		if c.Dir == "" {
			return fmt.Errorf("%s: %w", c, runtime.ErrUnsupported)
		}
		return work(ctx, s, args[0])
	})
	return cmd
}

// cacheState is the place and the contents of the cache.
type cacheState struct {
	Dir     string `json:"dir"`           // empty: memory only
	Off     string `json:"off,omitempty"` // why the directory is not in use
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Limit   int64  `json:"limit"` // of Bytes
	// The entries that were imported from a bundle, and those compiled on this machine.
	Imported int `json:"imported"`
	Compiles int `json:"compiles"`
}

func stateOf(s *runtime.Session) (cacheState, error) {
	stats := s.Cache().Stats()
	c := cacheState{Dir: stats.Dir, Off: strings.TrimSuffix(stats.DiskOff, ": "+runtime.ErrUnsupported.Error())}
	if c.Dir == "" && c.Off == "" {
		c.Off = "the user has no cache directory"
		if s.Config().CacheDir == "off" {
			c.Off = "CONCORD_CACHE_DIR is off"
		}
	}
	if c.Limit = s.Config().CacheSize; c.Limit == 0 {
		c.Limit = kernelcache.DefaultDiskBytes
	}
	list, err := s.Cache().List()
	for _, e := range list {
		c.Entries++
		c.Bytes += e.Bytes
		if e.Imported {
			c.Imported++
		}
	}
	c.Compiles = c.Entries - c.Imported
	return c, err
}

func (c cacheState) String() string {
	if c.Dir == "" {
		return "in memory only, nothing is on disk: " + c.Off
	}
	return fmt.Sprintf("%s: %s (%s, %d imported), %s of %s", c.Dir, quantity(c.Entries, "entry"),
		quantity(c.Compiles, "compile"), c.Imported,
		driver.FormatBytes(c.Bytes), driver.FormatBytes(c.Limit))
}

func (a *app) cacheStats(_ context.Context, s *runtime.Session) error {
	c, err := stateOf(s)
	if err != nil {
		return err
	}
	if a.json {
		return a.print(c)
	}
	fmt.Fprintln(a.stdout, c)
	return nil
}

// cacheEntry is one compiled program.
type cacheEntry struct {
	Key      string    `json:"key"`
	Label    string    `json:"label"`
	Bytes    int64     `json:"bytes"`
	Used     time.Time `json:"used"`
	Imported bool      `json:"imported"`
}

func (a *app) cacheList(_ context.Context, s *runtime.Session) error {
	list, err := s.Cache().List()
	if err != nil {
		return err
	}
	entries := make([]cacheEntry, len(list))
	for i, e := range list {
		entries[i] = cacheEntry{e.Key.String(), e.Label, e.Bytes, e.Used, e.Imported}
	}
	if a.json {
		return a.print(struct {
			Entries []cacheEntry `json:"entries"`
		}{entries})
	}
	t := &table{}
	t.add("KEY", "SIZE", "LAST USED", "FROM", "PROGRAM")
	for _, e := range entries {
		from := "compiled"
		if e.Imported {
			from = "imported"
		}
		t.add(e.Key[:16], driver.FormatBytes(e.Bytes), e.Used.Format(time.DateTime), from, e.Label)
	}
	t.write(a.stdout, "")
	return nil
}

func (a *app) cacheVerify(ctx context.Context, s *runtime.Session) error {
	r, err := s.Cache().Verify(ctx)
	if err != nil {
		return err
	}
	if a.json {
		err = a.print(struct {
			Checked int      `json:"checked"`
			Bytes   int64    `json:"bytes"`
			Corrupt []string `json:"corrupt"`
			Temp    int      `json:"leftovers"`
			OK      bool     `json:"ok"`
		}{r.Checked, r.Bytes, keys(r.Corrupt), r.Temp, len(r.Corrupt) == 0})
	} else {
		fmt.Fprintf(a.stdout, "%s checked, %s; %d damaged and deleted; %s deleted\n",
			quantity(r.Checked, "entry"), driver.FormatBytes(r.Bytes), len(r.Corrupt), quantity(r.Temp, "leftover"))
	}
	if err == nil && len(r.Corrupt) > 0 {
		err = reported(exitFailed)
	}
	return err
}

func keys(list []kernelcache.Key) []string {
	out := make([]string, len(list))
	for i, k := range list {
		out[i] = k.String()
	}
	return out
}

func (a *app) cacheClear(_ context.Context, s *runtime.Session) error {
	n, bytes, err := s.Cache().Clear()
	if a.json {
		return errors.Join(err, a.print(struct {
			Entries int   `json:"entries"`
			Bytes   int64 `json:"bytes"`
		}{n, bytes}))
	}
	fmt.Fprintf(a.stdout, "%s deleted, %s\n", quantity(n, "entry"), driver.FormatBytes(bytes))
	return err
}

func (a *app) cacheExport(ctx context.Context, s *runtime.Session, file string) error {
	if err := a.claim(aBundle, file); err != nil {
		return err
	}
	var moved kernelcache.Moved
	err := a.save(ctx, file, func(w io.Writer) (err error) {
		moved, err = s.Cache().Export(w, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file, withoutPath(err))
	}
	return a.tellMoved("written to", file, moved)
}

func (a *app) cacheImport(ctx context.Context, s *runtime.Session, file string) error {
	moved, err := wait(ctx, func() (kernelcache.Moved, error) {
		f, err := os.Open(file)
		if err != nil {
			return kernelcache.Moved{}, err
		}
		defer f.Close()
		moved, err := s.Cache().Import(f) // which checks whose file it is
		if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return moved, err
	})
	if err != nil {
		return err
	}
	return a.tellMoved("imported from", file, moved)
}

// tellMoved prints the number of exported or imported entries.
func (a *app) tellMoved(how, file string, m kernelcache.Moved) error {
	if a.json {
		return a.print(struct {
			File    string `json:"file"`
			Entries int    `json:"entries"`
			Bytes   int64  `json:"bytes"`
			Known   int    `json:"known"`
		}{file, m.Entries, m.Bytes, m.Known})
	}
	known := ""
	if m.Known > 0 {
		known = fmt.Sprintf("; %d were there already", m.Known)
	}
	fmt.Fprintf(a.stdout, "%s, %s, %s %s%s\n", quantity(m.Entries, "entry"), driver.FormatBytes(m.Bytes), how, file, known)
	return nil
}
