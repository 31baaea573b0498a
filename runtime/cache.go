package runtime

// The kernel cache of a session: where it is, and under which keys programs are
// kept in it.

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/source"
)

// CacheDir returns the directory of the kernel cache that a configuration names,
// or "" when nothing is kept on disk.
func CacheDir(cfg Config) string { return cacheOptions(cfg).Dir }

func cacheOptions(cfg Config) kernelcache.Options {
	o := kernelcache.Options{Dir: cfg.CacheDir, DiskBytes: cfg.CacheSize, Bundles: cfg.Bundles}
	switch cfg.CacheDir {
	case "off":
		o.Dir = ""
	case "":
		base, err := os.UserCacheDir()
		if err != nil {
			o.NoDir = err
			break
		}
		o.Dir = filepath.Join(base, "concord", "kernels")
	}
	return o
}

// keyOf makes the key of a unit on this device. who says what the identity is
// that of.
func (c *core) keyOf(who string, identity []string, unit *source.Unit, flags []string) kernelcache.Key {
	hash := unit.Hash()
	return kernelcache.KeyOf(
		kernelcache.F("backend", c.info.Backend),
		kernelcache.F("arch", c.info.Arch),
		kernelcache.F(who, identity...),
		kernelcache.F("flags", flags...),
		kernelcache.F("unit", string(hash[:])),
	)
}

// note remembers under which key a program is kept, for the next time.
func (c *core) note(key programKey, k kernelcache.Key) {
	c.mu.Lock()
	c.keys[key] = k
	c.mu.Unlock()
}

// targetKey is the key of a program for every compiler of this device's target, or
// zero if what a compiler makes is good only where that compiler is.
func (c *core) targetKey(key programKey, flags []string) kernelcache.Key {
	t, ok := c.compiler.(driver.Targeter)
	if !ok {
		return kernelcache.Key{}
	}
	return c.keyOf("target", t.Target(), key.unit, flags)
}

// prebuilt finds a program that was compiled elsewhere, where there is no compiler
// to make it, or its complete key, here.
func (c *core) prebuilt(key programKey, flags []string, reason error) (kernelcache.Entry, kernelcache.Hit, bool) {
	if !errors.Is(reason, ErrUnsupported) {
		return kernelcache.Entry{}, kernelcache.NoHit, false
	}
	k := c.targetKey(key, flags)
	e, hit, ok := c.session.cache().Find(k)
	if ok {
		c.note(key, k)
	}
	return e, hit, ok
}
