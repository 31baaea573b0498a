package profile

// Roofs that were measured: in this process, and on disk.

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// KeptRoof is the place of a device's roof in this process and on disk. KeepRoof returns it. It is safe for concurrent
// use.
type KeptRoof struct {
	key  string
	dir  string // "": not on disk
	roof atomic.Pointer[Roof]

	// turn is a lock, a channel of one place, which is held while the roof is read or measured. It is no mutex, since
	// a call stops waiting for it when its context ends.
	turn chan struct{}
}

var keptRoofs sync.Map // *KeptRoof by key and directory

// KeepRoof returns the place of a roof, the same for the same key, which names all that the measurement depends on,
// and the same directory for the file; "" means none.
func KeepRoof(key, dir string) *KeptRoof {
	k, _ := keptRoofs.LoadOrStore([2]string{key, dir}, &KeptRoof{key: key, dir: dir, turn: make(chan struct{}, 1)})
	return k.(*KeptRoof)
}

// Known returns the roof, or nil if neither this process nor one before has measured it. It waits for no measurement.
func (k *KeptRoof) Known() *Roof {
	select {
	case k.turn <- struct{}{}:
		k.find()
		<-k.turn
	default: // it is being measured
	}
	return k.roof.Load()
}

// Get returns the roof. If it is not known, or with again, it is what measure returns, which is then kept; a directory
// that cannot be written costs a measurement by the next process. Concurrent calls share one measurement, and a call
// that waits ends with ctx.
func (k *KeptRoof) Get(ctx context.Context, again bool, measure func() (Roof, error)) (Roof, error) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return Roof{}, context.Cause(ctx)
	}
	if !again && k.find() {
		return *k.roof.Load(), nil
	}
	r, err := measure()
	if err != nil {
		return Roof{}, err
	}
	k.roof.Store(&r)
	if k.dir != "" {
		_ = k.write(r)
	}
	return r, nil
}

// find reports whether the roof is known, in the process or on disk, with the turn taken.
func (k *KeptRoof) find() bool {
	if k.roof.Load() == nil && k.dir != "" {
		if r, err := k.read(); err == nil {
			k.roof.Store(&r)
		}
	}
	return k.roof.Load() != nil
}

// roofVersion is part of every file, and changes with its format and with what is measured.
const roofVersion = 1

// roofFile is the content of a file.
type roofFile struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	Roof    Roof   `json:"roof"`
}

func (k *KeptRoof) name() string { return k.key + ".json" }

// read reads a roof that write wrote.
func (k *KeptRoof) read() (Roof, error) {
	text, err := file.Kept(k.dir, k.name())
	if err != nil {
		return Roof{}, err
	}
	var r roofFile
	if err := json.Unmarshal(text, &r); err != nil || r.Version != roofVersion || r.Key != k.key {
		return Roof{}, fmt.Errorf("roof: %w", driver.ErrFormat)
	}
	return r.Roof, nil
}

func (k *KeptRoof) write(r Roof) error {
	text, err := json.MarshalIndent(roofFile{roofVersion, k.key, r}, "", "  ")
	if err != nil {
		return err
	}
	return file.Keep(k.dir, k.name(), text)
}
