package mpi

// The MPI library: which one, its handles, its functions.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

// maker is a family of libraries with one binary interface.
type maker int

const (
	openMPI maker = iota
	mpich         // and Intel MPI, MVAPICH, Cray MPICH, which share MPICH's interface
)

// usual are the names under which the libraries are installed.
var usual = map[maker][]string{
	openMPI: {"libmpi.so.40", "libmpi.so"},
	mpich:   {"libmpich.so.12", "libmpi.so.12", "libmpich.so"},
}

// launchers are variables by which a launcher shows itself to its processes, and whose it is. A launcher with PMIx
// (Slurm's, Open MPI's from version 5 on) mostly starts Open MPI, one with PMI mostly MPICH.
var launchers = []struct {
	variable string
	maker    maker
}{{"OMPI_COMM_WORLD_SIZE", openMPI}, {"PMI_SIZE", mpich}, {"PMI_RANK", mpich}, {"PMIX_RANK", openMPI}}

// sizes are variables in which a launcher says how many processes it has started. Slurm's is also
// set in processes that are not to join a job: in one that is, one of the others is set, too.
var sizes = []struct {
	variable string
	with     []string
}{{variable: "OMPI_COMM_WORLD_SIZE"}, {variable: "PMI_SIZE"},
	{"SLURM_STEP_NUM_TASKS", []string{"PMIX_RANK", "PMI_RANK"}}}

// candidates lists the names of libraries to try: one that was asked for alone, otherwise the launcher's first.
func candidates(asked string, getenv func(string) string) []string {
	if asked != "" {
		return []string{asked}
	}
	first := openMPI
	for _, l := range launchers {
		if getenv(l.variable) != "" {
			first = l.maker
			break
		}
	}
	return append(append([]string(nil), usual[first]...), usual[1-first]...)
}

// function is a function of the library, as an index.
type function int

const (
	initialized function = iota
	initThread
	finalized
	finalize
	abort
	libraryVersion
	commSize
	commRank
	commDup
	commSetErrhandler
	getProcessorName
	allgather
	isend
	irecv
	test
	cancel
	getCount
	errorString
	errorClass
	allreduce
	functions // their number
)

// names are the functions' names after MPI_.
var names = [functions]string{"Initialized", "Init_thread", "Finalized", "Finalize", "Abort", "Get_library_version",
	"Comm_size", "Comm_rank", "Comm_dup", "Comm_set_errhandler", "Get_processor_name", "Allgather", "Isend", "Irecv",
	"Test", "Cancel", "Get_count", "Error_string", "Error_class", "Allreduce"}

// answer is memory of C into which the library writes numbers and texts. The text is as large as any library's longest.
type answer struct {
	text   [8192]byte
	number [2]int32
	handle uint64
}

// at returns the addresses of the text and the first number.
func (a *answer) at() (text, number uint64) {
	return address(unsafe.Pointer(&a.text)), address(unsafe.Pointer(&a.number))
}

// serialized is the level of MPI_Init_thread at which any thread may call, one at a time.
const serialized = 2

// library is an opened MPI library. It stays open, since it has state and threads of its own.
type library struct {
	maker   maker
	version string // "Open MPI v4.1.4"
	f       [functions]unsafe.Pointer
	// Handles.
	world, self, bytes, float, sum, errorsReturn uint64
	anySource                                    int
	kinds                                        map[int32]error // of classes of errors that are no connection's
	answer                                       *answer
}

// failure is the code that a function of the library has returned.
type failure struct {
	name string // "MPI_Isend"
	code int32
	text string // the library's
	is   error  // a sentinel, or nil
}

// Error returns "MPI_Isend: Invalid rank (code 6)".
func (f *failure) Error() string { return fmt.Sprintf("%s: %s (code %d)", f.name, f.text, f.code) }

// Unwrap returns the sentinel.
func (f *failure) Unwrap() error { return f.is }

// openLibrary opens the first of the candidates that can be used. Its error says what is wrong with each.
func openLibrary(asked string) (*library, error) {
	if !callable {
		return nil, fmt.Errorf("mpi: a build without cgo, or for another processor than amd64 and arm64, has no MPI: %w",
			driver.ErrUnsupported)
	}
	var bad []error
	for _, name := range candidates(asked, os.Getenv) {
		lib, err := openOne(name)
		if err == nil {
			return lib, nil
		}
		bad = append(bad, err)
	}
	return nil, fmt.Errorf("mpi: no MPI library: %w: %w", errors.Join(bad...), driver.ErrUnsupported)
}

func openOne(name string) (*library, error) {
	symbols, err := cgo.Open(name)
	if err != nil {
		return nil, err
	}
	lib := &library{answer: (*answer)(zeroed(unsafe.Sizeof(answer{})))}
	if lib.answer == nil {
		return nil, fmt.Errorf("%s: %w", name, driver.ErrOutOfMemory)
	}
	for i, n := range names {
		if lib.f[i], err = symbols.Lookup("MPI_" + n); err != nil {
			return nil, fmt.Errorf("%s: no MPI_%s in it", name, n)
		}
	}
	if _, err := symbols.Lookup("ompi_mpi_comm_world"); err == nil {
		return lib, lib.asOpenMPI(name, symbols)
	}
	return lib, lib.asMPICH(name)
}

// asOpenMPI takes the handles of Open MPI, which are addresses of objects of the library.
func (l *library) asOpenMPI(name string, symbols cgo.Library) error {
	if !globally(name) {
		return fmt.Errorf("%s: its components would not find it", name)
	}
	for _, o := range []struct {
		handle *uint64
		symbol string
	}{{&l.world, "comm_world"}, {&l.self, "comm_self"}, {&l.bytes, "byte"}, {&l.float, "float"}, {&l.sum, "op_sum"},
		{&l.errorsReturn, "errors_return"}} {
		p, err := symbols.Lookup("ompi_mpi_" + o.symbol)
		if err != nil {
			return fmt.Errorf("%s: no ompi_mpi_%s in it", name, o.symbol)
		}
		*o.handle = address(p)
	}
	l.maker, l.anySource, l.kinds = openMPI, -1, kindsOf(15, 39, 13)
	l.version = l.versionText()
	return nil
}

// asMPICH takes the handles of MPICH's binary interface, which are numbers. A library that does not say that it is of
// that family is refused: with other handles it could end the process.
func (l *library) asMPICH(name string) error {
	l.maker, l.anySource, l.kinds = mpich, -2, kindsOf(14, 34, 12)
	l.world, l.self, l.bytes, l.float = 0x44000000, 0x44000001, 0x4c00010d, 0x4c00040a
	l.sum, l.errorsReturn = 0x58000003, 0x54000001
	l.version = l.versionText()
	for _, known := range []string{"MPICH", "Intel(R) MPI", "MVAPICH"} {
		if strings.Contains(l.version, known) {
			return nil
		}
	}
	return fmt.Errorf("%s: %q is neither Open MPI nor of MPICH's binary interface", name, l.version)
}

// versionText returns the library's name and version: the first line of its own text, up to a comma.
func (l *library) versionText() string {
	text, length := l.answer.at()
	if call(l.f[libraryVersion], text, length) != 0 {
		return ""
	}
	return shortVersion(upToNUL(l.answer.text[:]))
}

// shortVersion returns "Open MPI v4.1.4" for a text that continues ", package: …", and "MPICH Version: 4.0.2" with
// single spaces for the first of several lines.
func shortVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line, _, _ = strings.Cut(line, ",")
	return strings.Join(strings.Fields(line), " ")
}

// call calls a function. Its error has the library's text.
func (l *library) call(f function, args ...uint64) error {
	return l.check(f, call(l.f[f], args...))
}

// check returns the error for a code that a function has returned, or nil.
func (l *library) check(f function, code int32) error {
	if code == 0 {
		return nil
	}
	text, length := l.answer.at()
	l.answer.text[0] = 0
	call(l.f[errorString], number(int(code)), text, length)
	e := &failure{name: "MPI_" + names[f], code: code, text: strings.TrimSpace(upToNUL(l.answer.text[:]))}
	if call(l.f[errorClass], number(int(code)), length) == 0 {
		e.is = l.kinds[l.answer.number[0]]
	}
	return e
}

// kindsOf returns the kinds of classes of errors, for the numbers of MPI_ERR_TRUNCATE (a message is longer than its
// place), MPI_ERR_NO_MEM and MPI_ERR_ARG.
func kindsOf(truncate, noMemory, argument int32) map[int32]error {
	kinds := map[int32]error{truncate: driver.ErrDimension, noMemory: driver.ErrOutOfMemory,
		argument: driver.ErrInvalidArgument}
	for class := int32(1); class <= 6; class++ { // buffer, count, type, tag, communicator, rank
		kinds[class] = driver.ErrInvalidArgument
	}
	return kinds
}

// address returns an address as an argument: one of C's memory, or of memory that is pinned.
func address(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// number returns an int as an argument.
func number(n int) uint64 { return uint64(int64(n)) }

func upToNUL(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte{0})
	return string(text)
}
