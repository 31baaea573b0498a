package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every exported function that takes a context refuses a nil one, and changes nothing.
func TestNilContext(t *testing.T) {
	s, d := open(t, &nullBackend{}, Config{})
	k := kernel(t, d, "axpy")
	x, y := buffer(t, d, F32, 4), buffer(t, d, F32, 4)
	e, err := d.Stream().Record()
	require.NoError(t, err)
	before := d.Stats()
	var none context.Context
	for name, call := range map[string]func() error{
		"open":              func() error { _, err := s.Open(none, "cuda:0"); return err },
		"devices":           func() error { _, err := s.Devices(none); return err },
		"discover":          func() error { _, err := s.Discover(none); return err },
		"rediscover":        func() error { _, err := s.Rediscover(none); return err },
		"summary":           func() error { _, err := s.Summary(none); return err },
		"preflight":         func() error { return s.Preflight(none) },
		"default device":    func() error { _, err := s.DefaultDevice(none); return err },
		"set active device": func() error { return s.SetActiveDevice(none, 0) },
		"program":           func() error { _, err := d.Program(none, k.program.key.unit); return err },
		"precompile":        func() error { return d.Precompile(none, nil, nil) },
		"run":               func() error { _, err := d.Run(none, k, Items(4), float32(1), x, y, 4); return err },
		"sync":              func() error { return d.Sync(none) },
		"upload":            func() error { _, err := Upload(none, d, []float32{1}); return err },
		"write":             func() error { return Write(none, x, []float32{1}) },
		"read":              func() error { return Read(none, x, make([]float32, 1)) },
		"buffer":            func() error { return x.Sync(none) },
		"copy across":       func() error { return CopyAcross(none, y, x) },
		"event wait":        func() error { return e.Wait(none) },
	} {
		err := call()
		assert.ErrorIs(t, err, ErrInvalidArgument, name)
		assert.EqualError(t, err, shown(name)+": context is nil: invalid argument")
	}
	stream := d.Stream()
	for name, call := range map[string]func() error{
		"run":   func() error { _, err := stream.Run(none, k, Items(4), float32(1), x, y, 4); return err },
		"sync":  func() error { return stream.Sync(none) },
		"write": func() error { return stream.Write(none, x, 0, make([]byte, 4)) },
		"read":  func() error { return stream.Read(none, x, 0, make([]byte, 4)) },

		"wait for a buffer": func() error { return stream.WaitFor(none, x) },
		"wait for a stream": func() error { return stream.WaitForStream(none, stream) },
	} {
		assert.EqualError(t, call(), name+": context is nil: invalid argument")
	}
	assert.False(t, s.GPUAvailable(none))
	assert.Equal(t, before, d.Stats(), "nothing was done")
}

// shown is how an error names a function that names its argument too.
func shown(name string) string {
	switch name {
	case "open":
		return "open cuda:0"
	case "buffer":
		return "sync"
	}
	return name
}
