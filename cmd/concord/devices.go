package main

// concord devices: every backend with its devices, or why it has none.

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

func (a *app) devicesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List every backend: its devices, or why it has none",
		Example: `  concord devices
  concord devices --json`,
		Args: cobra.NoArgs,
	}
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error {
		s, err := a.open(exactly)
		if err != nil {
			return err
		}
		probes, err := s.Discover(ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.print(struct {
				Devices []runtime.Probe `json:"devices"`
			}{probes})
		}
		t := a.deviceTable(probes)
		t.write(a.stdout, "")
		return nil
	})
	return cmd
}

// deviceTable has a row for every device, and one for every backend without.
func (a *app) deviceTable(probes []runtime.Probe) *table {
	t := &table{}
	t.add("DEVICE", "STATE", "KIND", "MEMORY", "UNITS", "NAME")
	for _, p := range probes {
		for _, d := range p.Devices {
			t.add(a.paint(bold, d.ID), a.paintState(p.State), string(d.Kind), known(d.TotalMemory), count(d.Multiprocessors), d.Name)
		}
		if len(p.Devices) == 0 {
			t.add(p.Backend, a.paintState(p.State), "", "", "", oneLine(p.Reason))
		}
	}
	return t
}

func (a *app) paintState(s driver.State) string {
	switch s {
	case driver.Available:
		return a.paint(green, string(s))
	case driver.Fake:
		return a.paint(yellow, string(s))
	}
	return string(s)
}

// known is a size, or nothing where it is not known.
func known(bytes int64) string {
	if bytes == 0 {
		return "?"
	}
	return driver.FormatBytes(bytes)
}

func count(n int) string {
	if n == 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

// find returns the device that a name means.
func find(ctx context.Context, s *runtime.Session, name string) (runtime.Info, error) {
	dev, err := s.Open(ctx, name)
	if err != nil {
		return runtime.Info{}, fmt.Errorf("--device %s: %w", name, err)
	}
	defer dev.Close()
	return dev.Info(), nil
}
