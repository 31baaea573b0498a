package driver

import "context"

// Missing returns a backend that is listed but has no devices, for the reason given; opening one
// fails with that reason (ErrNoDevice). The reason of a Disabled backend says how to enable it, and
// is the remedy as well.
func Missing(name string, state State, reason string) Backend { return &missing{name, state, reason} }

type missing struct {
	name   string
	state  State
	reason string
}

// Name implements Backend.
func (m *missing) Name() string { return m.name }

// Probe implements Backend.
func (m *missing) Probe(context.Context, *Config) Probe {
	p := Probe{Backend: m.name, State: m.state, Reason: m.reason}
	if p.State == Disabled {
		p.Remedy = p.Reason
	}
	return p
}

// Open implements Backend.
func (m *missing) Open(context.Context, int, *Config) (Device, error) {
	return nil, &OpError{Backend: m.name, Op: "open", Detail: m.reason, Err: ErrNoDevice}
}
