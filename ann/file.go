package ann

// Indexes in files.

import (
	"bytes"
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
	"sync"

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
	graph   *graph // of kind hnsw

	sizes  []uint32 // of kind ivf: of each list, whose rows follow those of the one before
	middle []byte   // the centres
	book   []byte   // of kind pq: the values of codes, if there are centres, and the codes of each list
	codes  []byte   // or of kind hnsw with codes: those of the vectors, nil in files of before they were stored
	byID   []uint32 // the rows in the order of their ids
}

// WriteTo implements [Index].
func (f *Flat) WriteTo(to io.Writer) (int64, error) {
	if _, err := f.begin(context.Background(), 0, 1, nil); err != nil { // which puts the rows in order
		return 0, err
	}
	defer f.mu.RUnlock()
	c := saved{Kind: f.kind, Metric: f.e.metric.String(), Dim: f.e.dim, Rows: len(f.ids), Precision: f.e.code.String(),
		MaxRows: f.maxRows}
	if f.scaled && f.e.code.Precision == INT8Scaled {
		c.Scale = f.e.code.scale
	}
	return writeIndex(to, c, f.kept, f.sections())
}

// sections returns what a file has besides the configuration.
func (f *Flat) sections() []section {
	return []section{{name: "ids", data: bytesOf(f.ids)}, {name: "order", data: bytesOf(f.order)},
		{name: "vectors", parts: f.parts()}}
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

// writeIndex writes a file with a configuration and other sections. Those in want have to have these checksums.
func writeIndex(to io.Writer, c saved, want sums, sections []section) (int64, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	w, err := newWriter(to, c.version(sections))
	if err != nil {
		return w.at, err
	}
	w.want = want
	for _, s := range append([]section{{name: "config", data: text}}, sections...) {
		if err := w.add(s); err != nil {
			return w.at, err
		}
	}
	err = w.end()
	return w.at, err
}

// parts returns a function that reads the stored vectors piece by piece.
func (f *Flat) parts() func() ([]byte, error) {
	i, next := 0, f.stores[0].parts(f.place[0].Count)
	return func() ([]byte, error) {
		for {
			part, err := next()
			if len(part) > 0 || err != nil || i+1 == len(f.stores) {
				return part, err
			}
			i++
			next = f.stores[i].parts(f.place[i].Count)
		}
	}
}

// parts returns a function that reads the first rows of base piece by piece.
func (e *engine) parts(base *runtime.Buffer, rows int) func() ([]byte, error) {
	return parts(rows*e.dim*e.code.size(), func(at int64, data []byte) error {
		return e.dev.Stream().Read(context.Background(), base, at, data)
	})
}

// parts returns a function that reads size bytes piece by piece.
func parts(size int, read func(at int64, data []byte) error) func() ([]byte, error) {
	piece, at := make([]byte, min(size, 4<<20)), 0
	return func() ([]byte, error) {
		part := piece[:min(len(piece), size-at)]
		if len(part) == 0 {
			return nil, nil
		}
		err := read(int64(at), part)
		at += len(part)
		return part, err
	}
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
	corrupt := func(format string, args ...any) (*image, error) {
		return nil, corruptFile(format, args...)
	}
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
	case len(parts["ids"]) != 8*m.Rows || len(parts["order"]) != 0 && len(parts["order"]) != 4*m.Rows:
		return corrupt("%d rows have ids of %d bytes and an order of %d", m.Rows, len(parts["ids"]), len(parts["order"]))
	case m.Rows > math.MaxInt/row || len(m.vectors) != m.Rows*row:
		return corrupt("%d rows of %d components of %v are %d bytes", m.Rows, m.Dim, p, len(m.vectors))
	}
	m.ids = elements[int64](parts["ids"])
	if len(parts["order"]) > 0 {
		// which is otherwise nil: the vectors were added in the order of their rows
		m.order = elements[uint32](parts["order"])
	}
	if (m.Kind == "hnsw") != (m.HNSW != nil) || m.HNSW != nil && p != FP32 {
		return corrupt("a configuration of hnsw for kind %q, %v", m.Kind, p)
	}
	if m.HNSW != nil {
		return m, m.readGraph()
	}
	if (m.Kind == "ivf" || m.Kind == "pq") != (m.IVF != nil) || m.IVF != nil && m.Kind != m.IVF.kind() {
		return corrupt("a configuration of ivf for kind %q", m.Kind)
	}
	if m.IVF != nil {
		return m, m.readLists()
	}
	return m, nil
}

// sums returns the checksums of those of the named sections that are in the file.
func (m *image) sums(names ...string) sums {
	s := sums{}
	for _, x := range m.list {
		if slices.Contains(names, x.name) {
			s[x.name] = x.sum
		}
	}
	return s
}

// check checks what an index relies on: everything but the sections that only whole checks.
func (m *image) check() error {
	for _, s := range m.list {
		if s.name != "vectors" && s.name != "codes" && s.name != "first" {
			if err := s.verify(context.Background()); err != nil {
				return err
			}
		}
	}
	switch {
	case m.graph != nil:
		return m.checkGraph()
	case m.IVF != nil:
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

// whole checks all of a file.
func (m *image) whole(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	for _, s := range m.list {
		if s.name == "vectors" || s.name == "codes" || s.name == "first" {
			if err := s.verify(ctx); err != nil {
				return err
			}
		}
	}
	if m.graph != nil {
		return m.graph.checkLinks(0, 0)
	}
	return nil
}

// Open opens the index in a file. A device that uses the memory of the host reads the vectors where they are in
// the file, which is mapped and must not be changed while the index is open, except by replacing it as a whole,
// as [Save] does; to others they are copied. The first change of the index copies them, and never changes the
// file.
//
// Everything is checked but the vectors themselves, their codes, and the links in the first layer of a graph,
// which [Verify] checks too and searches read with care. A damaged file is [runtime.ErrCorrupt], any other file
// [runtime.ErrFormat], and one of a later version [runtime.ErrUnsupported]. Open itself checks the list of
// sections, the configuration and sizes, and takes as long however many vectors there are, except that it makes
// codes of a graph and checks files where these are of versions that did not store the codes or the order of
// ids. Ids, lists and the links of the upper layers are checked by the first call that needs them, whose
// context does not end that. It returns the error of the check or of a lack of memory, as does every call after
// it.
//
// What an index still has as it was in the file, in whatever memory that is by then, is compared with the
// file's checksums when the index is written, and before its first change: both fail with [runtime.ErrCorrupt]
// if it is not the same, and leave the index as it was. [HNSW.Remove] is no such change, as it only marks
// vectors.
//
// The index has the kind, metric, precision and limits that it was saved with. Of the options only Device and
// Session are used; "" is the CPU, or for an index of kind gpu the active device.
func Open(ctx context.Context, path string, o Options) (Index, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	m, err := file.Map(path)
	if err != nil {
		return nil, err
	}
	var ix Index
	im, err := readImage(m.Data)
	if err == nil {
		ix, err = im.index(ctx, o, func() { m.Close() })
	} else {
		m.Close()
	}
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
func (m *image) index(ctx context.Context, o Options, release func()) (ix Index, err error) {
	inPlace := false
	switch {
	case m.graph != nil:
		ix, inPlace, err = m.hnsw(ctx, o, release)
	case m.IVF != nil:
		ix, inPlace, err = m.ivf(ctx, o, release)
	default:
		ix, inPlace, err = m.flat(ctx, o, release)
	}
	if release != nil && !inPlace {
		release()
	}
	return ix, err
}

// flat makes a Flat index of a file. inPlace says that it has the file's memory, also after an error, and calls
// release.
func (m *image) flat(ctx context.Context, o Options, release func()) (ix Index, inPlace bool, err error) {
	kind := m.Kind
	switch brute := kind == "brute" || kind == "bruteforce"; {
	case brute && o.Device != "":
		return nil, false, fmt.Errorf("ann: a device for an index of kind %s: %w", kind, runtime.ErrUnsupported)
	case !brute && kind != "flat" && kind != "gpu":
		return nil, false, fmt.Errorf("ann: kind %q: %w", kind, runtime.ErrUnsupported)
	}
	o.Precision, o.MaxDim, o.MaxRows = m.code.Precision, m.Dim, m.MaxRows
	f, err := o.flat(ctx, kind, m.Dim, m.metric)
	if err != nil {
		return nil, false, err
	}
	f.setCode(m.code)
	f.scaled = m.Scale != 0
	if m.Rows > 0 {
		f.place = f.shares(m.Rows)
	}
	switch {
	case m.Rows == 0:
	case len(f.stores) > 1:
		err = m.share(ctx, f)
	default:
		var base *runtime.Buffer
		switch base, inPlace, err = m.store(ctx, f.e.dev, release); {
		case err == nil:
			f.stores[0].hold(base, inPlace)
		case short(err): // then the file's memory is the host's
			f.stores[0].keep(m.vectors, release)
			inPlace, err = release != nil, nil
		}
	}
	f.ids, f.order, f.sorted, f.mapped = m.ids, m.order, m.Rows, true
	if release != nil {
		f.late, f.kept = sync.OnceValue(m.check), m.sums("ids", "order", "vectors")
	}
	if err == nil && !inPlace { // then nothing has to keep the file
		if err = f.check(ctx); err == nil {
			f.own()
		}
	}
	if err != nil {
		return nil, inPlace, errors.Join(err, f.Close())
	}
	return f, inPlace, nil
}

// share copies the vectors to the stores of an index.
func (m *image) share(ctx context.Context, f *Flat) error {
	for i, s := range f.stores {
		p := f.place[i]
		c, err := s.bring(ctx, m.vectors[s.size(p.First):s.size(p.End())], p.Count)
		if err != nil {
			return err
		}
		c.memory = slices.Clone(c.memory)
		s.commit(ctx, c, p.Count)
	}
	return nil
}

// store returns the vectors in a device's memory: the file's if the device can use that, or else a copy.
func (m *image) store(ctx context.Context, dev *runtime.Device,
	release func()) (base *runtime.Buffer, inPlace bool, err error) {
	if release != nil {
		base, err := dev.Wrap(m.vectors, m.code.typ(), runtime.ForReading, release)
		if err == nil || !errors.Is(err, runtime.ErrUnsupported) {
			return base, err == nil, err
		}
	}
	if base, err = dev.Alloc(m.code.typ(), len(m.vectors)/m.code.size()); err != nil {
		return nil, false, err
	}
	base.SetTag("vectors")
	if err = dev.Stream().Write(ctx, base, 0, m.vectors); err == nil {
		err = dev.Stream().Sync(ctx)
	}
	if err != nil {
		return nil, false, errors.Join(err, base.Close())
	}
	return base, false, nil
}

// Save writes an index to a file, which is replaced as a whole: a reader finds the old one or the new one, also
// if the process is killed or ctx ends.
func Save(ctx context.Context, path string, ix Index) error {
	if ix == nil {
		return fmt.Errorf("ann: no index to save as %s: %w", path, runtime.ErrInvalidArgument)
	}
	if err := checkContext(ctx); err != nil {
		return err
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
	m, err := file.Map(path)
	if err != nil {
		return Info{}, err
	}
	defer m.Close()
	im, err := readImage(m.Data)
	switch {
	case err != nil:
	case whole:
		if err = im.whole(ctx); err == nil && im.graph != nil {
			if n := im.graph.lost(); n > 0 {
				err = corruptFile("searches do not come to %d of %d vectors, until HNSW.Compact links all anew", n,
					im.Rows-im.graph.count())
			}
		}
	default:
		err = im.check()
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
		info.Len -= im.graph.count()
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
