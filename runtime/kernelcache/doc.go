// Package kernelcache keeps compiled kernels, in memory and on disk, so that a program is compiled once per machine
// and not once per process. With bundles of them it need not even be compiled on every machine.
//
// # Basics
//
// [KeyOf] turns everything that decides the bytes of a compiled kernel into a [Key]. [Cache.Get] looks the key up in
// memory, on disk and in bundles, and calls the compiler only if none of them has it. Concurrent callers with the same
// key share one compile, in one process or in several. [Cache.Lookup] looks in memory only and never waits. Memory and
// disk are bounded, in bytes and in entries, and the least recently used entries are removed first.
//
//	Get ──> memory ──> disk ──> bundles ──> compile, once for all that wait
//	          ▲         ▲          │           │
//	          └─────────┴──────────┴───────────┘ kept for the next call
//
// # Bundles
//
// [Cache.Export] writes entries to one file. [Cache.Import] adds them to another cache, and a
// program can have the file built in ([Options].Bundles). An entry from a bundle is found by the
// same complete key as every other, and is marked as imported. [Cache.Find] finds entries by their
// target instead, for machines that lack the compiler that is a part of the key.
//
// # Trust
//
// Files are never trusted unchecked. A file is used only if its mark, version, key, lengths and SHA-256 are all
// correct; any other file with an entry's name is deleted and the kernel compiled again. A checksum does not stop an
// attacker, and entries are code that will be run. So the directory is used only if no user but this process's and the
// superuser can write to it or replace it. The directories and symbolic links on the way to it, from the root of the
// file system, have to belong to one of the two. Others must not be able to write to them, except to directories with
// the sticky bit such as /tmp. The directory is then held by a descriptor, so that later changes of its path have no
// effect. The same rules hold for the directories in it, and for every file, checked by the descriptor from which it
// is read: a regular file with one name. Files that fail are deleted and compiled again.
//
// Files and directories of [Options].Bundles that belong to other users, or that others can write
// to, are skipped; [Cache.Import] refuses such an *os.File with an error.
//
// # Read-only directories
//
// A directory that cannot be written to, because its file system is read-only or because it belongs
// to the superuser, is used for reading, without locks and times of use. New kernels then stay in
// memory only, which is logged once with slog at Warn when it first happens, and shown in
// [Stats.ReadOnly].
//
// # Caveats
//
// The disk is only an optimization. If it cannot be used the cache lives in memory, logs that once with slog at Warn
// and shows it in [Stats.DiskOff], and no caller ever gets an error for it. Locks between processes only save work.
// Where the file system has none, or a process holds one for longer than Options.LockWait, other processes compile as
// well. Each uses its own result, and the last file stays.
//
// Trust is based on owners and permissions. They do not show the access control lists of NFSv4 and
// macOS, nor the rules of a file server; systems without them, such as Windows, are trusted to
// protect a user's directories. Vendors' drivers keep caches of their own, with their own rules.
//
// All methods of a Cache may be called from any goroutine.
package kernelcache
