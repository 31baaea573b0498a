package main

// concord cache: what the kernel cache keeps on disk.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Look at, check and empty the cache of compiled kernels",
		Long: `The kernel cache keeps compiled programs, so that each is compiled once per machine.
CONCORD_CACHE_DIR names its directory; off keeps nothing on disk.`,
		Example: `  concord cache stats
  concord cache verify --json`,
		Args: cobra.NoArgs,
		RunE: needsCommand,
	}
	cmd.AddCommand(
		a.cachePart("stats", "Say where the cache is and how much it holds", a.cacheStats),
		a.cachePart("list", "List the compiled programs on disk", a.cacheList),
		a.cachePart("verify", "Read every entry, delete the damaged ones; fails if there were any", a.cacheVerify),
		a.cachePart("clear", "Delete every entry", a.cacheClear),
	)
	return cmd
}

func (a *app) cachePart(name, short string, work func(context.Context, *runtime.Session) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		Example: "  concord cache " + name + "\n  concord cache " + name + " --json",
	}
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		s, err := a.open(exactly)
		if err != nil {
			return err
		}
		return work(ctx, s)
	})
	return cmd
}

// cacheState is where the cache is and what it holds.
type cacheState struct {
	Dir     string `json:"dir"`           // empty: memory only
	Off     string `json:"off,omitempty"` // why the directory is not in use
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
}

func stateOf(s *runtime.Session) (cacheState, error) {
	stats := s.Cache().Stats()
	c := cacheState{Dir: stats.Dir, Off: stats.DiskOff}
	if c.Dir == "" && c.Off == "" {
		c.Off = "no directory: CONCORD_CACHE_DIR is off, or the user has no cache directory"
	}
	var err error
	c.Entries, c.Bytes, err = s.Cache().Size()
	return c, err
}

func (c cacheState) String() string {
	if c.Dir == "" {
		return "in memory only: " + c.Off
	}
	return fmt.Sprintf("%s: %d entries, %s", c.Dir, c.Entries, driver.FormatBytes(c.Bytes))
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
	Compiled time.Time `json:"compiled"`
}

func (a *app) cacheList(_ context.Context, s *runtime.Session) error {
	list, err := s.Cache().List()
	if err != nil {
		return err
	}
	entries := make([]cacheEntry, len(list))
	for i, e := range list {
		entries[i] = cacheEntry{e.Key.String(), e.Label, e.Bytes, e.ModTime}
	}
	if a.json {
		return a.print(struct {
			Entries []cacheEntry `json:"entries"`
		}{entries})
	}
	t := &table{}
	t.add("KEY", "SIZE", "COMPILED", "PROGRAM")
	for _, e := range entries {
		t.add(e.Key[:16], driver.FormatBytes(e.Bytes), e.Compiled.Format(time.DateTime), e.Label)
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
		fmt.Fprintf(a.stdout, "%d entries checked, %s; %d damaged and deleted; %d leftovers deleted\n",
			r.Checked, driver.FormatBytes(r.Bytes), len(r.Corrupt), r.Temp)
	}
	if err == nil && len(r.Corrupt) > 0 {
		err = told{exitFailed}
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
	fmt.Fprintf(a.stdout, "%d entries deleted, %s\n", n, driver.FormatBytes(bytes))
	return err
}
