// Package file checks that no other user can have written what a process is about to run,
// and writes files that are there as a whole or as they were before.
//
// # Basics
//
// [OpenRoot] holds a directory that is trusted, [SubRoot] and [OpenIn] what lies in it;
// [CheckOpen] and [Check] judge a file that is open; [TempDir] makes a working directory.
// [Replace] and [Create] write.
//
// # What is trusted
//
// A file or a directory is trusted if it belongs to this process's user or to the
// superuser and nobody else can write to it, and if the same is true of every
// directory on the way to it, from the root of the file system, and of every symbolic link on that
// way: in a directory that others can write to they can put something else in the
// place of what is there. A directory with the sticky bit, such as /tmp, may be on the way, as
// there only the owner of an entry can rename it. Write permission for the group counts as one for
// others, except for the group that has no member but this process's user in the system's
// files of users and groups. The way is walked from its
// beginning, so what was checked cannot be exchanged by others before the next
// step is taken.
//
// # Caveats
//
// Owners and permissions are what is looked at. An access control list of POSIX shows
// in the permissions of the group; one of NFSv4 or of macOS does not show, nor what the
// server of a network file system lets others do. Where a system has no owners and
// permissions of this kind, as Windows, everything is trusted that the system lets this user
// open. In a container that has no number for the superuser, the owner of the root of the file
// system is trusted on the way, though not below a directory that others can
// write to, nor with what lies at the end of it.
//
// All functions may be called from any goroutine.
package file
