package kernelcache

// The directory of the disk layer: checked, held by a descriptor, and used for reading only where
// it cannot be written.

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

// folder is Dir/v3. It holds the entries in directories named by the first byte of their keys, and
// temporary files and locks in tmp. All operations use the descriptor of the directory that was
// checked, even if its path names another one by then.
type folder struct {
	dir string // Dir, absolute

	mu       sync.Mutex
	root     *os.Root // nil: opened when it is needed
	readOnly error    // why nothing can be written; nil: it can
}

const tempName = "tmp"

// open returns the directory. The first call, and the first one after close, checks and if
// necessary makes it.
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

// noted remembers that the directory cannot be written if the error means that.
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

// close closes the directory; the next use opens it again.
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

// forget is close for a directory that other calls may be using.
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

// probe tries to write. A read-only directory is no error, nor is a full disk or a temporary
// failure, since existing entries can be read. A directory that is not trusted is an error.
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

// unwritable reports whether every later write will fail in the same way.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// cannotWrite turns an unwritable error into one about the whole directory.
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

// inRoot completes the path in an error about a name in root.
func inRoot(root *os.Root, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(root.Name(), e.Path), Err: e.Err}
	}
	return err
}
