package runtime

// The kernel cache of a session: its directory, and the keys of programs.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/source"
)

// cacheDir returns the directory of the kernel cache that a configuration names,
// or "" when nothing is kept on disk.
func cacheDir(cfg Config) string { return cacheOptions(cfg).Dir }

func cacheOptions(cfg Config) kernelcache.Options {
	o := kernelcache.Options{Dir: cfg.CacheDir, DiskBytes: cfg.CacheSize, Bundles: cfg.Bundles}
	switch cfg.CacheDir {
	case "off":
		o.Dir = ""
	case "":
		base, err := os.UserCacheDir()
		if err == nil && !filepath.IsAbs(base) { // a relative HOME would mean the working directory
			err = fmt.Errorf("the directory for caches, %q, is relative", base)
		}
		if err != nil {
			o.NoDir = err
			break
		}
		o.Dir = filepath.Join(base, "concord", "kernels")
	}
	return o
}

// keyOf makes the key of a unit on this device. label names the identity: that of the compiler
// or that of the target.
func (lib *programs) keyOf(label string, identity []string, unit *source.Unit, flags []string) kernelcache.Key {
	hash := unit.Hash()
	return kernelcache.KeyOf(
		kernelcache.F("backend", lib.core.info.Backend),
		kernelcache.F("arch", lib.core.info.Arch),
		kernelcache.F(label, identity...),
		kernelcache.F("flags", flags...),
		kernelcache.F("unit", string(hash[:])),
	)
}

// note remembers under which key a program is kept, for the next time.
func (lib *programs) note(key programKey, k kernelcache.Key) {
	lib.mu.Lock()
	lib.keys[key] = k
	lib.mu.Unlock()
}

// targetKey is the key of a program for every compiler of this device's target, or zero if the
// compiler's output can be used only on machines with the same compiler.
func (lib *programs) targetKey(key programKey, flags []string) kernelcache.Key {
	t, ok := lib.core.compiler.(driver.Targeter)
	if !ok {
		return kernelcache.Key{}
	}
	return lib.keyOf("target", t.Target(), key.unit, flags)
}

// prebuilt finds a program that was compiled elsewhere, if there is no compiler here that could
// build it or complete its key.
func (lib *programs) prebuilt(key programKey, flags []string, reason error) (kernelcache.Entry, kernelcache.Hit, bool) {
	if !errors.Is(reason, ErrUnsupported) {
		return kernelcache.Entry{}, kernelcache.NoHit, false
	}
	k := lib.targetKey(key, flags)
	e, hit, ok := lib.core.session.cache().Find(k)
	if ok {
		lib.note(key, k)
	}
	return e, hit, ok
}
