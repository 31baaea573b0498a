package ann

// The file format: sections with checksums, and the list of them at the end, so that a file is written in one pass.
//
//	0            mark, 8 bytes; version, u32; 52 bytes of zeros
//	64           sections, each at a multiple of 64
//	...          the list, 64 bytes for each section: name (8 bytes), position and length (u64), SHA-256,
//	             8 bytes of zeros
//	end - 64     position of the list and number of sections (u64), length of the file (u64), SHA-256 of the
//	             first 64 bytes, the list and these
//	             24 bytes, the mark
//
// Numbers are little-endian.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"

	"github.com/concord-compute/concord/runtime"
)

const (
	mark    = "\x89ann\r\n\x1a\n"
	version = 2  // 1 had no copies in graphs, and codes of vectors as they are; files without these are written as 1
	block   = 64 // alignment of sections, and size of the head, the tail and an entry of the list
)

// section is a part of a file. Its bytes are those of the file.
type section struct {
	name string
	data []byte
	sum  [sha256.Size]byte

	parts iter.Seq2[[]byte, error] // of a section to be written, instead of data
}

// data returns a section to be written.
func data[T runtime.Element](name string, x []T) section {
	return section{name: name, data: bytesOf(x)}
}

// pieceSize is the size of the pieces of a section: they are still in the processor's caches when they are written
// after the checksum has read them.
const pieceSize = 4 << 20

// pieces returns bytes piece by piece.
func pieces(data []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for part := range slices.Chunk(data, pieceSize) {
			if !yield(part, nil) {
				return
			}
		}
	}
}

// writer writes a file.
type writer struct {
	to   io.Writer
	at   int64
	head []byte
	list []byte // entries of the sections so far
	sum  hash.Hash
	want sums
}

// sums are the checksums, by name, of sections that an index has as they are in the file it was opened from.
// Nobody reads all of a file when it is opened; so they are compared when the contents are read anyway: when
// they are written to another file, which would have right checksums of wrong contents, and before they are
// changed.
type sums map[string][sha256.Size]byte

// check compares sections that are in s with what it says.
func (s sums) check(list ...section) error {
	w := &writer{to: io.Discard, sum: sha256.New(), want: s}
	for _, x := range list {
		if _, ok := s[x.name]; ok {
			if err := w.add(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// newWriter begins a file of a version.
func newWriter(to io.Writer, version uint32) (*writer, error) {
	w := &writer{to: to, sum: sha256.New(), head: make([]byte, block)}
	copy(w.head, mark)
	binary.LittleEndian.PutUint32(w.head[8:], version)
	return w, w.write(w.head)
}

func (w *writer) write(b []byte) error {
	n, err := w.to.Write(b)
	w.at += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// add writes a section. If it has another checksum than it has to have, that is runtime.ErrCorrupt.
func (w *writer) add(s section) error {
	first, parts := w.at, s.parts
	if parts == nil {
		parts = pieces(s.data)
	}
	w.sum.Reset()
	for part, err := range parts {
		if err == nil {
			w.sum.Write(part)
			err = w.write(part)
		}
		if err != nil {
			return err
		}
	}
	entry := make([]byte, block)
	copy(entry[:8], s.name)
	binary.LittleEndian.PutUint64(entry[8:], uint64(first))
	binary.LittleEndian.PutUint64(entry[16:], uint64(w.at-first))
	w.sum.Sum(entry[24:24])
	if want, ok := w.want[s.name]; ok && want != [sha256.Size]byte(entry[24:]) {
		return fmt.Errorf("ann: section %q has been damaged since its file was written: %w", s.name, runtime.ErrCorrupt)
	}
	w.list = append(w.list, entry...)
	if rest := int(w.at % block); rest > 0 {
		return w.write(make([]byte, block-rest))
	}
	return nil
}

// end writes the list and the tail.
func (w *writer) end() error {
	tail := make([]byte, 0, block)
	tail = binary.LittleEndian.AppendUint64(tail, uint64(w.at))
	tail = binary.LittleEndian.AppendUint64(tail, uint64(len(w.list)/block))
	tail = binary.LittleEndian.AppendUint64(tail, uint64(w.at)+uint64(len(w.list))+block)
	w.sum.Reset()
	w.sum.Write(w.head)
	w.sum.Write(w.list)
	w.sum.Write(tail)
	tail = append(w.sum.Sum(tail), mark...)
	if err := w.write(w.list); err != nil {
		return err
	}
	return w.write(tail)
}

// readSections returns the sections of a file, whose own bytes are not checked yet. The errors match
// runtime.ErrFormat for anything but a file of this format, runtime.ErrUnsupported for a later version, and
// runtime.ErrCorrupt for a damaged file.
func readSections(file []byte) ([]section, error) {
	corrupt := func(format string, args ...any) ([]section, error) { return nil, corruptFile(format, args...) }
	if !bytes.HasPrefix(file, []byte(mark)) {
		return nil, fmt.Errorf("ann: the file does not begin with the mark of an index: %w", runtime.ErrFormat)
	}
	if len(file) < 2*block {
		return corrupt("a file of %d bytes is too short", len(file))
	}
	if v := binary.LittleEndian.Uint32(file[8:]); v > version {
		return nil, fmt.Errorf("ann: version %d of the format, and %d is the latest known: %w", v, version,
			runtime.ErrUnsupported)
	}
	tail := file[len(file)-block:]
	at, count, length := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:]),
		binary.LittleEndian.Uint64(tail[16:])
	end := uint64(len(file) - block)
	switch {
	case string(tail[block-len(mark):]) != mark || length != uint64(len(file)):
		return corrupt("the file does not end as it was written")
	case at < block || at > end || at%block != 0 || count != (end-at)/block || (end-at)%block != 0:
		return corrupt("there is no list of sections where the end of the file says")
	}
	sum := sha256.New()
	sum.Write(file[:block])
	sum.Write(file[at:end])
	sum.Write(tail[:24])
	if !bytes.Equal(sum.Sum(nil), tail[24:24+sha256.Size]) {
		return corrupt("the checksum of the list of sections is wrong")
	}
	var list []section
	last := uint64(block) // the end of the section before
	for entry := file[at:end]; len(entry) > 0; entry = entry[block:] {
		first, n := binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint64(entry[16:])
		// sections that overlap could be far more to read than the file
		if first < last || first > at || n > at-first || first%block != 0 {
			return corrupt("section %q is not after the one before, and in the file", entry[:8])
		}
		last = first + n
		s := section{name: string(bytes.TrimRight(entry[:8], "\x00")), data: file[first : first+n : first+n]}
		copy(s.sum[:], entry[24:])
		list = append(list, s)
	}
	return list, nil
}

// verify compares a section with its checksum, until ctx is done.
func (s section) verify(ctx context.Context) error {
	sum := sha256.New()
	for data := s.data; len(data) > 0; data = data[min(len(data), 16<<20):] {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum.Write(data[:min(len(data), 16<<20)])
	}
	if !bytes.Equal(sum.Sum(nil), s.sum[:]) {
		return fmt.Errorf("ann: the checksum of section %q is wrong: %w", s.name, runtime.ErrCorrupt)
	}
	return nil
}
