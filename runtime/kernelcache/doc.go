// Package kernelcache keeps compiled kernels, in memory and on disk, so that a
// program is compiled once per machine and not once per process, and bundles of
// them, so that it need not be compiled on every machine.
//
// # Basics
//
// [KeyOf] turns everything that decides the bytes of a compiled kernel into a
// [Key]. [Cache.Get] looks the key up in memory, on disk and in bundles, and calls
// the compiler only when none of them has it; callers that ask for the same key at
// the same time share one compile, in one process or in several. [Cache.Lookup] is
// the part of it that never waits. Memory and disk are bounded, in bytes and in
// entries, and what was not used for longest goes first.
//
// # Bundles
//
// [Cache.Export] writes entries to one file. [Cache.Import] keeps them in another
// cache, and a program can have the file built in ([Options].Bundles). An entry
// from a bundle is found by the same complete key as every other, and says that it
// was imported. [Cache.Find] finds entries by their target instead, for machines
// that lack the compiler that is a part of the key.
//
// # What is trusted
//
// Nothing that was read from disk. A file counts only if its magic, version,
// key, lengths and SHA-256 are all right; any other file with an entry's name is
// deleted and the kernel compiled again. A directory that others can write to, or
// that belongs to another user, is not used at all: whoever can write there
// could have this process run code of their choice.
//
// # Caveats
//
// The disk is a convenience. Where it cannot be used the cache lives in memory,
// says so once with slog at Warn and in [Stats.DiskOff], and no caller ever gets
// an error for it. Locks between processes save work and nothing else: where the
// file system has none, or a process holds one for longer than Options.LockWait,
// others compile as well; each keeps its own result, and the last file stays.
//
// All methods of a Cache may be called from any goroutine.
package kernelcache
