package driver

import "context"

// Missing returns a backend that is listed and not there: it has no devices for
// the reason given, and opening one says the same (ErrNoDevice).
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
	return Probe{Backend: m.name, State: m.state, Reason: m.reason}
}

// Open implements Backend.
func (m *missing) Open(context.Context, int, *Config) (Device, error) {
	return nil, &OpError{Backend: m.name, Op: "open", Detail: m.reason, Err: ErrNoDevice}
}
