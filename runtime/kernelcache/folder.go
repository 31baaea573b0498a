package kernelcache

// The directory of the disk layer: found to be safe, held by a descriptor, and only
// read where it cannot be written.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// folder is Dir/v3, where the entries are in directories by the first byte of their keys, and
// temporary files and locks in tmp. What is done in it is done by the descriptor of
// the directory that was checked, whatever its path names by then.
type folder struct {
	dir string // Dir, absolute

	mu       sync.Mutex
	root     *os.Root // nil: opened when it is needed
	readOnly error    // why nothing can be written; nil: it can
}

const tempName = "tmp"

// open returns the directory. A first call, and one after close, looks for it and checks
// it; it may be made.
func (f *folder) open() (*os.Root, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root != nil {
		return f.root, nil
	}
	top, err := file.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	root, err := below(top, fmt.Sprintf("v%d", version))
	if err != nil {
		return nil, err
	}
	readOnly, err := probe(root)
	if err != nil {
		root.Close()
		return nil, err
	}
	f.root, f.readOnly = root, readOnly
	return root, nil
}

// writable returns the directory if entries can be written to it.
func (f *folder) writable() (*os.Root, error) {
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return root, f.readOnly
}

// noted remembers that nothing can be written if that is what an error says.
func (f *folder) noted(root *os.Root, err error) error {
	if !unwritable(err) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root == root {
		f.readOnly = cannotWrite(root, err)
	}
	return err
}

// close lets go of the directory; what needs it next looks for it again.
func (f *folder) close() error {
	f.mu.Lock()
	root := f.root
	f.root, f.readOnly = nil, nil
	f.mu.Unlock()
	if root == nil {
		return nil
	}
	return root.Close()
}

// forget is close for a directory that others may be using.
func (f *folder) forget(root *os.Root) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.root == root {
		f.root, f.readOnly = nil, nil // closed when it is collected
	}
}

// below opens a directory in another one, and makes it if it is missing.
func below(root *os.Root, name string) (*os.Root, error) {
	sub, err := file.SubRoot(root, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, inRoot(root, err)
	}
	return file.SubRoot(root, name)
}

// probe tries to write. A directory that can only be read is no error, nor is a full disk or
// a failure that may pass: what is there can be read. A directory that is not trusted is one.
func probe(root *os.Root) (readOnly, err error) {
	tmp, err := below(root, tempName)
	if err == nil {
		tmp.Close()
		var f *os.File
		if f, err = createTemp(root); err == nil {
			f.Close()
			err = inRoot(root, root.Remove(tempName+"/"+filepath.Base(f.Name())))
		}
	}
	switch {
	case unwritable(err):
		return cannotWrite(root, err), nil
	case errors.Is(err, driver.ErrUnsupported):
		return nil, err
	}
	return nil, nil
}

// unwritable reports whether an error will be the same at every try to write.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// cannotWrite is an unwritable error about all of a directory.
func cannotWrite(root *os.Root, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return &fs.PathError{Op: "write", Path: root.Name(), Err: err}
}

// createTemp makes a temporary file, whose name in root is tempName/Base(f.Name()).
func createTemp(root *os.Root) (*os.File, error) {
	f, err := root.OpenFile(tempName+"/"+tempPrefix+rand.Text(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return f, inRoot(root, err)
}

// inRoot gives an error about a name in root the whole path.
func inRoot(root *os.Root, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(root.Name(), e.Path), Err: e.Err}
	}
	return err
}
