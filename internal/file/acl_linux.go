package file

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const accessList = "system.posix_acl_access"

// keepAccess gives a new file the access control list of the old one, and returns the permissions
// to set after that. With a list, the group's permissions are the list's mask. If the new file
// cannot have the list, they would give the group more than it had, and are dropped.
func keepAccess(f *os.File, old *os.File, mode fs.FileMode) fs.FileMode {
	list := make([]byte, 64<<10)
	n, err := unix.Fgetxattr(int(old.Fd()), accessList, list)
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return mode
	case err == nil && mode&0o070 != 0:
		err = unix.Fsetxattr(int(f.Fd()), accessList, list[:n], 0)
	}
	if err != nil {
		return mode &^ 0o070
	}
	return mode
}
