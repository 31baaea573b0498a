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
//	Get ──> memory ──> disk ──> bundles ──> compile, once for all that wait
//	          ▲         ▲          │           │
//	          └─────────┴──────────┴───────────┘ kept for the next call
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
// Nothing that was read from disk. A file counts only if its mark, version,
// key, lengths and SHA-256 are all right; any other file with an entry's name is
// deleted and the kernel compiled again. A checksum keeps no attacker out, and entries are
// code that will be run. So the directory is used only if nobody but this process's user and the
// superuser can write to it, or put another one in its place: the directories on the way to it, from
// the root of the file system, and the links on that way have to belong to one of the two and to
// be closed to writing by others, but for the sticky bit, as /tmp has it. It is then
// held by a descriptor, and whatever its path names later is not looked at. The same is asked of the
// directories in it, and of every file that is read, by the descriptor it is read from: a
// regular file, of one name. Files that fail are deleted and compiled again.
//
// Files and directories of [Options].Bundles that belong to others, or that others can write
// to, are passed over; so is such an *os.File by [Cache.Import], with an error.
//
// # Read-only directories
//
// A directory that cannot be written to, because its file system is mounted so or because
// it is the superuser's, is read: no lock and no time of use is needed for that. What is compiled
// then stays in memory, which is said once with slog at Warn when it first happens, and in
// [Stats.ReadOnly].
//
// # Caveats
//
// The disk is a convenience. Where it cannot be used the cache lives in memory,
// says so once with slog at Warn and in [Stats.DiskOff], and no caller ever gets
// an error for it. Locks between processes save work and nothing else: where the
// file system has none, or a process holds one for longer than Options.LockWait,
// others compile as well; each keeps its own result, and the last file stays.
//
// Trust is a matter of owners and permissions. What an access control list of NFSv4 or macOS
// allows does not show in them, nor what a file server does; a system without them, such as
// Windows, is trusted to keep a user's directories to the user. Vendors' drivers
// keep caches of their own, by rules of their own.
//
// All methods of a Cache may be called from any goroutine.
package kernelcache
