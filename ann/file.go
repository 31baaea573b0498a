package ann

// Indexes in files.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime"
)

// saved is the configuration of an index in a file, in JSON.
type saved struct {
	Kind      string  `json:"kind"`
	Metric    string  `json:"metric"`
	Dim       int     `json:"dim"`
	Rows      int     `json:"rows"`
	Precision string  `json:"precision"`
	Scale     float64 `json:"scale,omitempty"` // of int8scaled or the codes of hnsw, once it is fixed
	MaxRows   int     `json:"max_rows,omitempty"`

	HNSW       *HNSWOptions `json:"hnsw,omitempty"`
	Directions bool         `json:"directions,omitempty"` // the codes of hnsw are those of directions
	Entry      uint64       `json:"entry,omitempty"`      // of the graph

	IVF     *IVFOptions `json:"ivf,omitempty"`
	Trained int         `json:"trained,omitempty"` // vectors of which the lists were made
}

// image is an index as it is in a file. The slices are the file's memory, or that of an index.
type image struct {
	saved
	list    []section
	parts   map[string][]byte // their contents
	metric  Metric
	code    coding
	ids     []int64
	order   []uint32
	vectors []byte
	byID    []uint32 // the rows in the order of their ids, but for flat, whose rows are in it
	live    bitset   // the rows that are not removed, nil if all are there
	graph   *graph   // of kind hnsw

	sizes  []uint32  // of kind ivf: of each list, whose rows follow those of the one before
	middle []float32 // the centres
	book   []float32 // of kind pq: the values of codes, if there are centres, and the codes of each list
	codes  []byte    // or of kind hnsw with codes: those of the vectors, nil in files of before they were stored
	hides  []uint64  // of kind hnsw: the removed rows
	centre []float32 // and of codes
}

// version returns the earliest version of the format that has all that is in a file, so that earlier builds
// read it if they can.
func (c saved) version(sections []section) uint32 {
	if c.Directions || slices.ContainsFunc(sections, func(s section) bool {
		return s.name == "copies" || s.name == "centre"
	}) {
		return 2
	}
	return 1
}

func corruptFile(format string, args ...any) error {
	return fmt.Errorf("ann: "+format+": %w", append(args, runtime.ErrCorrupt)...)
}

// readImage reads the configuration of a file, and the sizes of its other sections, whose contents check and
// whole check.
func readImage(data []byte) (*image, error) {
	list, err := readSections(data)
	if err != nil {
		return nil, err
	}
	corrupt := func(format string, args ...any) (*image, error) { return nil, corruptFile(format, args...) }
	parts := map[string][]byte{}
	for _, s := range list {
		if _, twice := parts[s.name]; twice {
			return corrupt("there are two sections %q", s.name)
		}
		if s.name == "config" {
			if err := s.verify(context.Background()); err != nil {
				return nil, err
			}
		}
		parts[s.name] = s.data
	}
	for _, name := range []string{"config", "ids", "order", "vectors"} {
		if _, ok := parts[name]; !ok {
			return corrupt("there is no section %q", name)
		}
	}
	m := &image{list: list, parts: parts, vectors: parts["vectors"]}
	d := json.NewDecoder(bytes.NewReader(parts["config"]))
	d.DisallowUnknownFields()
	if err := d.Decode(&m.saved); err != nil {
		return corrupt("the configuration: %v", err)
	}
	if m.metric, err = ParseMetric(m.Metric); err != nil {
		return nil, err
	}
	p, err := ParsePrecision(m.Precision)
	if err != nil {
		return nil, err
	}
	m.code = p.scaleOf(nil)
	if m.Scale != 0 && p == INT8Scaled {
		m.code.scale = m.Scale
	}
	scaled := p == INT8Scaled || m.HNSW != nil && m.HNSW.Codes
	row := m.Dim * p.size()
	switch {
	case m.Dim < 1 || m.Dim > math.MaxInt32 || m.Rows < 0 || m.Rows >= math.MaxUint32 || m.MaxRows < 0:
		return corrupt("%d rows of %d components, of at most %d", m.Rows, m.Dim, m.MaxRows)
	case m.Scale < 0 || m.Scale > math.MaxFloat32 || m.Scale != 0 && !scaled || m.Scale == 0 && scaled && m.Rows > 0:
		return corrupt("scale %v of %v", m.Scale, p)
	case m.Rows > math.MaxInt/row || len(m.vectors) != m.Rows*row:
		return corrupt("%d rows of %d components of %v are %d bytes", m.Rows, m.Dim, p, len(m.vectors))
	case (m.Kind == "hnsw") != (m.HNSW != nil) || m.HNSW != nil && p != FP32:
		return corrupt("a configuration of hnsw for kind %q, %v", m.Kind, p)
	case (m.Kind == "ivf" || m.Kind == "pq") != (m.IVF != nil) || m.IVF != nil && m.Kind != m.IVF.kind():
		return corrupt("a configuration of ivf for kind %q", m.Kind)
	}
	// without an order the vectors were added in the order of their rows
	err = cmp.Or(column(m, "ids", &m.ids, m.Rows), column(m, "order", &m.order, m.Rows, 0))
	switch {
	case err != nil:
		return nil, err
	case m.HNSW != nil:
		return m, m.readGraph()
	case m.IVF != nil:
		return m, m.readLists()
	}
	return m, nil
}

// column makes a slice the contents of a section, which have to be one of these numbers of elements.
func column[T runtime.Element](m *image, name string, to *[]T, elementsOf ...int) error {
	data := m.parts[name]
	x := elements[T](data)
	if len(data) != len(bytesOf(x)) || !slices.Contains(elementsOf, len(x)) {
		return corruptFile("section %q of %d rows of %d components is %d bytes", name, m.Rows, m.Dim, len(data))
	}
	if *to = nil; len(x) > 0 {
		*to = x
	}
	return nil
}

// optional is column for a section that files may lack.
func optional[T runtime.Element](m *image, name string, to *[]T, n int) error {
	if _, ok := m.parts[name]; !ok {
		return nil
	}
	return column(m, name, to, n)
}

// check checks what an index relies on: everything but the sections that only whole checks.
func (m *image) check() error {
	if err := m.verify(context.Background(), false); err != nil {
		return err
	}
	if m.graph != nil {
		return m.checkGraph()
	}
	if m.IVF != nil {
		if err := m.checkLists(); err != nil {
			return err
		}
	}
	for i, id := range m.ids {
		if m.IVF == nil && (id < 0 || i > 0 && id <= m.ids[i-1]) {
			return corruptFile("id %d of row %d is not above the one before", id, i)
		}
	}
	seen := newBitset(m.Rows)
	for _, rank := range m.order {
		if int(rank) >= m.Rows || seen.has(int(rank)) {
			return corruptFile("the order in which vectors were added has %d twice, or not at all", rank)
		}
		seen.put(int(rank), true)
	}
	return nil
}

// checkByID checks the rows in the order of their ids.
func (m *image) checkByID() error {
	last := int64(-1) // ascending ids are all different, and so are their rows
	for _, row := range m.byID {
		if int(row) >= m.Rows || !m.live.has(int(row)) || m.ids[row] <= last {
			return corruptFile("row %d is not that of the id after %d", row, last)
		}
		last = m.ids[row]
	}
	return nil
}

// verify compares sections with their checksums: those that only whole checks, or the others.
func (m *image) verify(ctx context.Context, whole bool) error {
	for _, s := range m.list {
		if whole == slices.Contains([]string{"vectors", "codes", "first"}, s.name) {
			if err := s.verify(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole checks all of a file.
func (m *image) whole(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	if err := m.verify(ctx, true); err != nil || m.graph == nil {
		return err
	}
	return m.graph.checkLinks(0, 0)
}

// Open opens the index in a file. The file is mapped: a device that uses the memory of the host reads the vectors
// where they are in it, and to others they are copied. It must not be changed while the index is open, except by
// replacing it as a whole, as [Save] does. The first change of the index copies them, and never changes the file.
//
// Everything is checked but the vectors themselves, their codes, and the links in the first layer of a graph,
// which [Verify] checks too and searches read with care. A damaged file is [runtime.ErrCorrupt], any other file
// [runtime.ErrFormat], and one of a later version [runtime.ErrUnsupported]. Open itself checks the list of
// sections, the configuration and sizes, and takes as long however many vectors there are. Files of versions that
// did not store the order of ids, or the codes of a graph, take longer. Ids, lists and the links of the upper
// layers are checked by the first call that needs them, whose context does not end that. It returns the error of
// the check or of a lack of memory, as does every call after it.
//
// What an index still has as it was in the file is compared with the file's checksums when the index is written,
// and before its first change. If it is not the same, both fail with [runtime.ErrCorrupt] and leave the index as
// it was. [HNSW.Remove] is no such change, as it only marks vectors.
//
// The index has the kind, metric, precision and limits that it was saved with. Of the options only Device, Session,
// Runner and Progress are used; "" is the CPU, or for an index of kind gpu the active device.
func Open(ctx context.Context, path string, o Options) (Index, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, as of an index in shards, which OpenSharded opens: %w", path,
			runtime.ErrInvalidArgument)
	}
	im, m, err := file.Parse(path, readImage)
	if err != nil {
		return nil, err
	}
	ix, err := im.index(ctx, o, func() { m.Close() })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ix, nil
}

// Read reads an index from a reader to its end, as [Open] does from a file, and also checks the vectors.
func Read(ctx context.Context, r io.Reader, o Options) (Index, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	m, err := readImage(data)
	if err == nil {
		err = m.whole(ctx)
	}
	if err != nil {
		return nil, err
	}
	return m.index(ctx, o, nil)
}

// index makes the index of a file. release is called once when the file's contents are not needed any more,
// also after an error; if it is nil, they were checked, and are copied.
func (m *image) index(ctx context.Context, o Options, release func()) (Index, error) {
	if o.Runner != nil {
		x, err := o.moving(ctx, m.Kind, m.Dim, m.metric, m, release)
		if err != nil {
			return nil, err
		}
		return x, nil
	}
	return m.made(ctx, o, release, func(o Options) (contents, error) { return o.empty(ctx, m.Kind, m.Dim, m.metric) })
}

// made is index with a function that makes an empty one.
func (m *image) made(ctx context.Context, o Options, release func(),
	empty func(o Options) (contents, error)) (c contents, err error) {
	inPlace := false
	defer func() {
		if release != nil && !inPlace {
			release()
		}
	}()
	if t, ok := kinds[m.Kind]; !ok {
		return nil, fmt.Errorf("ann: kind %q: %w", m.Kind, runtime.ErrUnsupported)
	} else if !t.device && o.Device != "" {
		return nil, fmt.Errorf("ann: a device for an index of kind %s: %w", m.Kind, runtime.ErrUnsupported)
	}
	o.Precision, o.MaxDim, o.MaxRows = m.code.Precision, m.Dim, m.MaxRows
	if m.HNSW != nil {
		o.HNSW = *m.HNSW
	}
	if m.IVF != nil {
		o.IVF = *m.IVF
	}
	if c, err = empty(o); err != nil {
		return nil, err
	}
	if inPlace, err = c.base().load(ctx, m, release); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Save writes an index to a file, which is replaced as a whole: a reader finds the old one or the new one, also
// if the process is killed or ctx ends. For a [Sharded] index the path is that of a directory: see [Sharded.Save].
func Save(ctx context.Context, path string, ix Index) error {
	if ix == nil {
		return fmt.Errorf("ann: no index to save as %s: %w", path, runtime.ErrInvalidArgument)
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	if s, ok := ix.(*Sharded); ok {
		return s.Save(ctx, path)
	}
	return file.Replace(path, func(w io.Writer) error {
		_, err := ix.WriteTo(during{ctx, w})
		return err
	})
}

// during is a writer until a context ends.
type during struct {
	ctx context.Context
	to  io.Writer
}

// Write writes a part of a file.
func (d during) Write(part []byte) (int, error) {
	if err := d.ctx.Err(); err != nil {
		return 0, err
	}
	return d.to.Write(part)
}

// LoadInfo describes the index in a file without opening a device. It checks what [Open] and the first search check.
func LoadInfo(path string) (Info, error) { return describe(context.Background(), path, false) }

// Verify checks a file with all of its checksums, and describes the index in it. The errors are those of
// [Open], that of ctx, which ends it, and for a graph [runtime.ErrCorrupt] if links lead to less than all of
// its vectors.
func Verify(ctx context.Context, path string) (Info, error) { return describe(ctx, path, true) }

func describe(ctx context.Context, path string, whole bool) (Info, error) {
	if err := checkContext(ctx); err != nil {
		return Info{}, err
	}
	im, m, err := file.Parse(path, readImage)
	if err != nil {
		return Info{}, err
	}
	defer m.Close()
	if !whole {
		err = im.check()
	} else if err = im.whole(ctx); err == nil && im.graph != nil {
		if n := im.graph.lost(im.live); n > 0 {
			err = corruptFile("searches do not come to %d of %d vectors, until HNSW.Compact links all anew", n, len(im.byID))
		}
	}
	if err != nil {
		return Info{}, fmt.Errorf("%s: %w", path, err)
	}
	info := Info{Kind: im.Kind, Metric: im.Metric, Dim: im.Dim, Len: im.Rows, Precision: im.Precision, DeviceMemory: -1,
		HNSW: im.HNSW}
	if im.IVF != nil {
		o := *im.IVF
		o.Lists = len(im.sizes)
		info.IVF = &o
	}
	if im.graph != nil {
		info.Len = len(im.byID)
	}
	return info, nil
}

// SaveIn writes an index to a file of a directory, which exists. ".bin" is appended to a name that does not end
// so. A name that begins with a separator or a drive, or that has "..", a NUL or a percent sign, is
// [runtime.ErrInvalidArgument]; the file is never outside of the directory, whatever links are in it. The file
// is replaced as a whole.
func SaveIn(ctx context.Context, dir, name string, ix Index) (err error) {
	if err := checkContext(ctx); err != nil {
		return err
	}
	root, name, err := rootOf(dir, name)
	if err != nil {
		return err
	}
	defer root.Close()
	temporary := fmt.Sprintf("%s.%x.tmp", name, rand.Uint64())
	out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = ix.WriteTo(during{ctx, out})
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(temporary))
	}
	return err
}

// LoadIn reads what [SaveIn] wrote, with the same rules for names and the errors of [Read].
func LoadIn(ctx context.Context, dir, name string, o Options) (Index, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	root, name, err := rootOf(dir, name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name) // first, as opening a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "load", Path: name, Err: runtime.ErrFormat}
	}
	in, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return Read(ctx, in, o)
}

// rootOf opens a directory and returns the name of a file in it.
func rootOf(dir, name string) (*os.Root, string, error) {
	drive := len(name) > 1 && name[1] == ':'
	if name == "" || strings.Contains(name, "..") || strings.ContainsAny(name, "\x00%") || strings.HasPrefix(name, "/") ||
		strings.HasPrefix(name, `\`) ||
		drive || !filepath.IsLocal(name) {
		return nil, "", fmt.Errorf("ann: %q is no name of a file in a directory: %w", name, runtime.ErrInvalidArgument)
	}
	if !strings.HasSuffix(name, ".bin") {
		name += ".bin"
	}
	root, err := os.OpenRoot(dir)
	return root, name, err
}
