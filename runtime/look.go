package runtime

// Looking at one backend: once for all concurrent callers, and no longer than the timeout, even if
// the driver hangs.

import (
	"context"
	"fmt"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// sight is a session's knowledge of one backend. Session.mu guards it.
type sight struct {
	found   *Probe // the result of the last look, or nil
	looking *look  // under way, or nil
}

// look is one look at a backend.
type look struct {
	over  chan struct{} // closed once probe is set
	probe Probe
}

// look returns the result of the last look at a backend or, if there is none or with again, of a
// new one. A look belongs to no caller: it goes on when the contexts of its callers are done, and
// its result is kept.
func (s *Session) look(ctx context.Context, b driver.Backend, again bool) (Probe, error) {
	s.mu.Lock()
	at := s.sights[b.Name()]
	if at == nil {
		at = &sight{}
		s.sights[b.Name()] = at
	}
	if at.found != nil && !again {
		defer s.mu.Unlock()
		return *at.found, nil
	}
	if err := ctx.Err(); err != nil {
		s.mu.Unlock()
		return Probe{}, err
	}
	l := at.looking
	if l == nil {
		l = &look{over: make(chan struct{})}
		at.looking = l
		go s.finish(l, at, b)
	}
	s.mu.Unlock()
	select {
	case <-l.over:
		return l.probe, nil
	case <-ctx.Done():
		return Probe{}, ctx.Err()
	}
}

// finish carries out a look and keeps its result.
func (s *Session) finish(l *look, at *sight, b driver.Backend) {
	l.probe = s.probe(b)
	p := &l.probe
	s.debug(1, "probed", "backend", p.Backend, "state", p.State, "devices", len(p.Devices), "reason", p.Reason, "elapsed",
		p.Elapsed)
	s.mu.Lock()
	defer s.mu.Unlock()
	at.found, at.looking = p, nil
	close(l.over)
}

// probe probes one backend, no longer than the timeout. A probe that hangs in a driver is
// abandoned, and its result dropped.
func (s *Session) probe(b driver.Backend) Probe {
	timeout := s.cfg.ProbeLimit()
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	result := make(chan Probe, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				result <- Probe{State: driver.Unavailable, Reason: fmt.Sprintf("probe panicked: %v", r)}
			}
		}()
		result <- b.Probe(ctx, &s.cfg)
	}()
	var p Probe
	select {
	case p = <-result:
	case <-ctx.Done():
		p = Probe{State: driver.Unavailable, Reason: fmt.Sprintf("probe timed out after %v (CONCORD_PROBE_TIMEOUT)", timeout),
			Remedy: "the driver does not answer: look at its log, or allow more with CONCORD_PROBE_TIMEOUT"}
	}
	p.Backend, p.Elapsed = b.Name(), time.Since(start)
	if p.State == driver.Available && len(p.Devices) == 0 {
		p.State = driver.Unavailable
	}
	switch {
	case p.State == driver.Available:
		p.Remedy = "" // there is nothing to remedy
	case p.Reason == "":
		p.Reason = "no devices"
	}
	return p
}
