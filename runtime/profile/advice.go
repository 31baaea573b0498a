package profile

// What a summary means, in words.

import (
	"fmt"
	"strings"
	"time"
)

// From these on a part of the time is worth a sentence. They are choices, not measurements.
const (
	largeShare  = 0.2                    // of a device's work, for a kernel
	largeIdle   = 0.3                    // of the time from a device's first work to its last
	nearRoof    = 0.7                    // of the roof: little is left to gain by the same work
	farFromRoof = 0.4                    // of the roof
	shortLaunch = 20 * time.Microsecond  // some ten times what queueing one costs
	longCompile = 100 * time.Millisecond // that a person notices
)

// advise returns a sentence for everything that takes much of the time and that a program can change. A kernel
// whose amount of work nobody stated is reported as such, and gets no advice on its speed.
func (s *Summary) advise() (list []string) {
	for i := range s.Devices {
		list = append(list, s.adviseDevice(&s.Devices[i])...)
	}
	for i := range s.Lines {
		if words := s.Lines[i].advise(); words != "" {
			list = append(list, words)
		}
	}
	return list
}

// adviseDevice returns what limits a device as a whole: compiling, waits of the host, or launches.
func (s *Summary) adviseDevice(d *DeviceSummary) (list []string) {
	var compiles, moved, launches time.Duration
	work, waits, short := 0, 0, 0
	for i := range s.Lines {
		l := &s.Lines[i]
		if l.Device != d.Device {
			continue
		}
		done := l.Count - l.Failed // failed work has no times
		switch l.Kind {
		case Compile.String():
			compiles += l.Total
		case Wait.String():
			waits += done
		case Copy.String():
			if strings.Contains(l.Name, "host") {
				moved += l.Total
			}
			work += done
		case Launch.String():
			if l.P50 < shortLaunch {
				short += done
			}
			launches += l.Total
			work += done
		case Fill.String(), Graph.String():
			work += done
		}
	}
	say := func(format string, args ...any) {
		list = append(list, d.Device+": "+fmt.Sprintf(format, args...))
	}
	if compiles >= longCompile && compiles > d.Busy/2 {
		say("getting programs took %v, the device's work %v: keep the kernel cache, and build programs together, with "+
			"Device.Programs", digits(compiles), digits(d.Busy))
	}
	if idle := float64(d.Idle) / float64(max(d.Wall, 1)); idle >= largeIdle {
		switch {
		case waits > 0 && 2*waits >= work:
			say("idle for %.0f %% of the time, and the host waited %d times for %d operations: queue more before waiting",
				100*idle, waits, work)
		case short > 0 && 2*short >= work:
			say("idle for %.0f %% of the time between %d launches that take less than %v each: fuse them, or record them in "+
				"a graph", 100*idle, short, shortLaunch)
		}
	}
	if moved > 0 && moved > launches {
		say("copies between host and device took %v, kernels %v: keep data on the device", digits(moved), digits(launches))
	}
	return list
}

// advise returns what limits the kernel of the line, if it takes much of its device's time.
func (l *Line) advise() string {
	if l.Kind != Launch.String() || !l.Share.Known() || l.Share < largeShare {
		return ""
	}
	head := fmt.Sprintf("%s: %s takes %s %% of the work", l.Device, l.Name, l.Share.text(100))
	switch {
	case !l.GBs.Known():
		return head + ", and how much it reads, writes and computes is unknown: state it with Grid.Does"
	case !l.OfRoof.Known():
		return ""
	case l.OfRoof >= nearRoof && l.Bound == MemoryBound:
		return fmt.Sprintf("%s at %s %% of the memory's rate: only fewer bytes make it faster, by fusing it with its "+
			"neighbours or by narrower types", head, l.OfRoof.text(100))
	case l.OfRoof >= nearRoof:
		return fmt.Sprintf("%s at %s %% of the device's arithmetic: only fewer operations make it faster, or narrower types",
			head, l.OfRoof.text(100))
	case l.OfRoof < farFromRoof:
		return fmt.Sprintf("%s at %s %% of what the device can do: look at its accesses, group size and occupancy", head,
			l.OfRoof.text(100))
	}
	return ""
}
