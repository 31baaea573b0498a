// Package kernelcache keeps compiled kernels, in memory and on disk, so that a
// program is compiled once per machine and not once per process.
//
// # Basics
//
// [KeyOf] turns everything that decides the bytes of a compiled kernel into a
// [Key]. [Cache.Get] looks the key up in memory, then on disk, and calls the
// compiler only when both have nothing; callers that ask for the same key at the
// same time share one compile. [Cache.Lookup] is the part of it that never waits.
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
// an error for it. Of several processes that compile the same kernel at the same
// time each keeps its own result; the last file stays.
//
// All methods of a Cache may be called from any goroutine.
package kernelcache
