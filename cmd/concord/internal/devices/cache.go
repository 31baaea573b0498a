package devices

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

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
)

// Cache returns the command cache.
func Cache(a *app.App) *cobra.Command {
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
		RunE: app.NeedsCommand,
	}
	cmd.AddCommand(
		cachePart(a, "stats", "Say where the cache is and how much it holds", "", cacheStats),
		cachePart(a, "list", "List the compiled programs on disk", "", cacheList),
		cachePart(a, "verify", "Read every entry, delete the damaged ones; fails if there were any", "", cacheVerify),
		cachePart(a, "clear", "Delete every entry", "", cacheClear),
		cachePart(a, "export FILE", "Write every entry to one file, a bundle",
			`Export writes every entry to FILE, a bundle: for concord cache import on machines with
the same devices and drivers, and to be built into programs (runtime.Config.Bundles).`, cacheExport),
		cachePart(a, "import FILE", "Keep the entries of a bundle, marked as imported",
			`Import keeps the entries of FILE, which concord cache export wrote. Programs use one
only where device, driver and compiler are those it was made for; on a machine without
a C++ compiler, cpu:0 uses what was made for the same system and processor features.
A bundle is code that will run: import only what you would run.`, cacheImport),
	)
	return cmd
}

// cachePart is a subcommand. One that takes a file needs the cache to be on disk; the others say that it is not.
func cachePart(a *app.App, use, short, long string,
	work func(ctx context.Context, a *app.App, s *runtime.Session, file string) error) *cobra.Command {
	name, _, takesFile := strings.Cut(use, " ")
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.ExactArgs(0),
		Example: "  concord cache " + name + "\n  concord cache " + name + " --json"}
	if takesFile {
		cmd.Args, cmd.Example = cobra.ExactArgs(1), "  concord cache "+name+" kernels.bundle"
	}
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		s, err := a.Open(app.Exactly)
		if err != nil {
			return err
		}
		c, err := stateOf(s)
		switch {
		case takesFile && err != nil:
			return err
		case takesFile && c.Dir == "":
			return fmt.Errorf("%s: %w", c, runtime.ErrUnsupported)
		case err == nil && c.Dir == "" && !a.JSON && name != "stats":
			a.Println(c)
			return nil
		}
		return work(ctx, a, s, strings.Join(args, ""))
	})
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
	return fmt.Sprintf("%s: %s (%s, %d imported), %s of %s", c.Dir, ui.Quantity(c.Entries, "entry"),
		ui.Quantity(c.Compiles, "compile"), c.Imported,
		driver.FormatBytes(c.Bytes), driver.FormatBytes(c.Limit))
}

func cacheStats(_ context.Context, a *app.App, s *runtime.Session, _ string) error {
	c, err := stateOf(s)
	if err != nil {
		return err
	}
	return a.Show(c, func() { a.Println(c) })
}

// cacheEntry is one compiled program.
type cacheEntry struct {
	Key      string    `json:"key"`
	Label    string    `json:"label"`
	Bytes    int64     `json:"bytes"`
	Used     time.Time `json:"used"`
	Imported bool      `json:"imported"`
}

func cacheList(_ context.Context, a *app.App, s *runtime.Session, _ string) error {
	list, err := s.Cache().List()
	if err != nil {
		return err
	}
	entries := make([]cacheEntry, len(list))
	for i, e := range list {
		entries[i] = cacheEntry{e.Key.String(), e.Label, e.Bytes, e.Used, e.Imported}
	}
	return a.Show(map[string]any{"entries": entries}, func() {
		t := ui.NewTable("KEY", "SIZE", "LAST USED", "FROM", "PROGRAM")
		for _, e := range entries {
			from := "compiled"
			if e.Imported {
				from = "imported"
			}
			t.Add(e.Key[:16], driver.FormatBytes(e.Bytes), e.Used.Format(time.DateTime), from, e.Label)
		}
		t.Write(a.Stdout, "")
	})
}

func cacheVerify(ctx context.Context, a *app.App, s *runtime.Session, _ string) error {
	r, err := s.Cache().Verify(ctx)
	if err != nil {
		return err
	}
	ok := len(r.Corrupt) == 0
	return a.Verdict(struct {
		Checked int      `json:"checked"`
		Bytes   int64    `json:"bytes"`
		Corrupt []string `json:"corrupt"`
		Temp    int      `json:"leftovers"`
		OK      bool     `json:"ok"`
	}{r.Checked, r.Bytes, keys(r.Corrupt), r.Temp, ok}, func() {
		a.Printf("%s checked, %s; %d damaged and deleted; %s deleted\n",
			ui.Quantity(r.Checked, "entry"), driver.FormatBytes(r.Bytes), len(r.Corrupt), ui.Quantity(r.Temp, "leftover"))
	}, ok)
}

func keys(list []kernelcache.Key) []string {
	out := make([]string, len(list))
	for i, k := range list {
		out[i] = k.String()
	}
	return out
}

func cacheClear(_ context.Context, a *app.App, s *runtime.Session, _ string) error {
	n, bytes, err := s.Cache().Clear()
	return errors.Join(err, a.Show(struct {
		Entries int   `json:"entries"`
		Bytes   int64 `json:"bytes"`
	}{n, bytes}, func() { a.Printf("%s deleted, %s\n", ui.Quantity(n, "entry"), driver.FormatBytes(bytes)) }))
}

func cacheExport(ctx context.Context, a *app.App, s *runtime.Session, file string) error {
	if err := a.Claim(files.Bundle, file); err != nil {
		return err
	}
	var moved kernelcache.Moved
	err := a.Save(ctx, file, func(w io.Writer) (err error) {
		moved, err = s.Cache().Export(w, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file, files.WithoutPath(err))
	}
	return writeMoved(a, "written to", file, moved)
}

func cacheImport(ctx context.Context, a *app.App, s *runtime.Session, file string) error {
	moved, err := files.Wait(ctx, func() (kernelcache.Moved, error) {
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
	return writeMoved(a, "imported from", file, moved)
}

// writeMoved prints the number of exported or imported entries.
func writeMoved(a *app.App, how, file string, m kernelcache.Moved) error {
	return a.Show(struct {
		File    string `json:"file"`
		Entries int    `json:"entries"`
		Bytes   int64  `json:"bytes"`
		Known   int    `json:"known"`
	}{file, m.Entries, m.Bytes, m.Known}, func() {
		known := ""
		if m.Known > 0 {
			known = fmt.Sprintf("; %d were there already", m.Known)
		}
		a.Printf("%s, %s, %s %s%s\n", ui.Quantity(m.Entries, "entry"), driver.FormatBytes(m.Bytes), how, file, known)
	})
}
