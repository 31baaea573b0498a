// Package file checks that no other user can have written a file that a process is about to run,
// replaces files as a whole or not at all, and maps files into memory.
//
// # Basics
//
// [OpenRoot] opens a trusted directory and holds it, [SubRoot] and [OpenIn] open its contents;
// [CheckOpen] and [Check] check a file that is open; [TempDir] makes a working directory.
// [Replace] and [Create] write. [Map] maps a file of any owner.
//
// # Trust
//
// A file or a directory is trusted if it belongs to this process's user or to the superuser and no
// other user can write to it, and if the same is true of every directory and every symbolic link on
// the way to it, from the root of the file system: a user who can write to a directory can replace
// its entries. A directory with the sticky bit, such as /tmp, may be on the way, as there only the
// owner of an entry can rename it. Write permission for the group counts as one for others, except
// for a group whose only member is this process's user, according to the system's files of users
// and groups. The way is walked from its beginning, so that a part that was checked cannot be
// replaced by others before the next step is taken.
//
// # Caveats
//
// Only owners and permissions are checked. An access control list of POSIX shows in the permissions
// of the group; those of NFSv4 and macOS do not show, nor do the rules of a network file server. On
// systems without such owners and permissions, such as Windows, everything is trusted that the
// system lets this user open. In a container without a number for the superuser, the owner of the
// root of the file system is trusted for directories on the way, but neither below a directory that
// others can write to nor for the file at the end.
//
// All functions may be called from any goroutine.
package file
