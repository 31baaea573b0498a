//go:build cgo && unix

package cgo

/*
#cgo linux LDFLAGS: -ldl
#cgo noescape concord_dl_open
#cgo nocallback concord_dl_open
#cgo noescape concord_dl_symbol
#cgo nocallback concord_dl_symbol
#cgo noescape concord_dl_close
#cgo nocallback concord_dl_close

#include <dlfcn.h>
#include <stdio.h>
#include <stdint.h>

// The text of dlerror belongs to the thread that failed, so it is fetched in the
// same call: the goroutine may be on another thread by the next one.
static void concord_dl_why(char *text, uint64_t size) {
  const char *why = dlerror();
  snprintf(text, (size_t)size, "%s", why != NULL ? why : "unknown error");
}

static void *concord_dl_open(const char *path, char *text, uint64_t size) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) concord_dl_why(text, size);
  return library;
}

static void *concord_dl_symbol(void *library, const char *name, char *text, uint64_t size) {
  dlerror();
  void *symbol = dlsym(library, name);
  if (symbol == NULL) concord_dl_why(text, size);
  return symbol;
}

static int32_t concord_dl_close(void *library, char *text, uint64_t size) {
  if (dlclose(library) == 0) return 0;
  concord_dl_why(text, size);
  return -1;
}
*/
import "C"

import (
	"errors"
	"strings"
	"unsafe"
)

// Library is a shared object that the dynamic loader has loaded. The zero value is no library. Its
// methods may be called from any goroutine.
type Library struct{ handle unsafe.Pointer }

// Open loads a shared object, resolves all its symbols at once (RTLD_NOW) and keeps them invisible
// to other libraries (RTLD_LOCAL). A path with a slash names a file; the loader searches for a bare
// name.
func Open(path string) (Library, error) {
	name, err := cString(path)
	if err != nil {
		return Library{}, err
	}
	text := make([]byte, textSize)
	handle := C.concord_dl_open((*C.char)(unsafe.Pointer(&name[0])), (*C.char)(unsafe.Pointer(&text[0])),
		C.uint64_t(len(text)))
	if handle == nil {
		return Library{}, why(text)
	}
	return Library{handle}, nil
}

// Lookup returns the address of a symbol.
func (l Library) Lookup(symbol string) (unsafe.Pointer, error) {
	if l.handle == nil {
		return nil, errors.New("no library")
	}
	name, err := cString(symbol)
	if err != nil {
		return nil, err
	}
	text := make([]byte, textSize)
	p := C.concord_dl_symbol(l.handle, (*C.char)(unsafe.Pointer(&name[0])), (*C.char)(unsafe.Pointer(&text[0])),
		C.uint64_t(len(text)))
	if p == nil {
		return nil, why(text)
	}
	return p, nil
}

// Close unloads the library. None of its functions may be running or be called later. Only
// libraries that Concord compiled itself are ever closed: vendors' libraries do not work any more
// after they were unloaded.
func (l Library) Close() error {
	if l.handle == nil {
		return nil
	}
	text := make([]byte, textSize)
	if C.concord_dl_close(l.handle, (*C.char)(unsafe.Pointer(&text[0])), C.uint64_t(len(text))) != 0 {
		return why(text)
	}
	return nil
}

// textSize is the size of the buffer for a message of the loader, in bytes.
const textSize = 1024

func why(text []byte) error { return errors.New(upToNUL(text)) }

func cString(s string) ([]byte, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, errors.New("name with a NUL byte")
	}
	return append([]byte(s), 0), nil
}
