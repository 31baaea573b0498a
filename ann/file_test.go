package ann

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
)

// written returns an index with ids in no order, its file, and a query.
func written(t testing.TB, name string, m Metric, p Precision) (f *Flat, path string, query []float32) {
	r := rand.New(rand.NewPCG(31, 32))
	f = flat(t, open(t, name), 12, m, FlatOptions{Precision: p, MaxRows: 1000})
	require.NoError(t, f.Add(t.Context(), numbers(r, 400), random(r, 400, 12)))
	path = filepath.Join(t.TempDir(), "index")
	require.NoError(t, Save(t.Context(), path, f))
	return f, path, random(r, 1, 12)
}

func find(t testing.TB, ix Index, query []float32, filter *Filter) []Result {
	t.Helper()
	got, err := ix.Search(t.Context(), nil, query, 10, filter)
	require.NoError(t, err)
	return got
}

// TestFile reads indexes of every metric and precision back on each device: they answer as before, and after
// changes, which leave the file as it is.
func TestFile(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	mask := make([]bool, 400)
	for i := range mask {
		mask[i] = r.IntN(2) == 0
	}
	for _, name := range []string{"cpu:0", "opencl:0"} {
		for _, m := range metrics(t) {
			for _, p := range []Precision{FP32, FP16, INT8, INT8Scaled} {
				if m.kind > l2sq && (p > FP16 || name != "cpu:0") {
					continue
				}
				f, path, query := written(t, name, m, p)
				before, err := os.ReadFile(path)
				require.NoError(t, err)
				info, err := Verify(t.Context(), path)
				require.NoError(t, err)
				assert.Equal(t, 400, info.Len)
				ix, err := Open(t.Context(), path, Options{Device: name})
				require.NoError(t, err)
				loaded, err := Read(t.Context(), bytes.NewReader(before), Options{Device: name})
				require.NoError(t, err)
				for _, ix := range []Index{ix, loaded} {
					assert.Equal(t, f.Info(), ix.Info())
					assert.Equal(t, find(t, f, query, nil), find(t, ix, query, nil))
					assert.Equal(t, find(t, f, query, Mask(mask)), find(t, ix, query, Mask(mask)))
					var again bytes.Buffer
					n, err := ix.WriteTo(&again)
					require.NoError(t, err)
					assert.EqualValues(t, len(before), n)
					assert.True(t, bytes.Equal(before, again.Bytes()), "the same index is the same file")
				}
				ids := find(t, ix, query, nil)
				zeros := make([]float32, 12)
				for i, change := range []func(ix Index) error{
					func(ix Index) error { return Update(t.Context(), ix, ids[0].ID, zeros) },
					func(ix Index) error { return ix.Remove(t.Context(), []int64{ids[1].ID, f.ids[len(f.ids)-1]}) },
					func(ix Index) error { return ix.Add(t.Context(), []int64{1, 1 << 40}, make([]float32, 24)) },
				} {
					require.NoError(t, change(ix), i)
					require.NoError(t, change(f), i)
					assert.Equal(t, find(t, f, query, nil), find(t, ix, query, nil), i)
				}
				assert.ErrorIs(t, ix.Add(t.Context(), make([]int64, 700), make([]float32, 700*12)), runtime.ErrInvalidArgument)
				after, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(before, after))
				require.NoError(t, ix.Close())
				require.NoError(t, loaded.Close())
			}
		}
	}
}

// TestFileAppends makes the changes of an index in a file that are nearest to writing into the mapped memory.
func TestFileAppends(t *testing.T) {
	f, path, query := written(t, "cpu:0", Euclidean, FP32)
	last := f.ids[len(f.ids)-1]
	for what, change := range map[string]func(ix Index) error{
		"remove and add": func(ix Index) error {
			if err := ix.Remove(t.Context(), []int64{last}); err != nil {
				return err
			}
			return ix.Add(t.Context(), []int64{last}, query)
		},
		"update": func(ix Index) error { return Update(t.Context(), ix, last, query) },
		"compact": func(ix Index) error {
			if err := ix.Remove(t.Context(), []int64{f.ids[0]}); err != nil {
				return err
			}
			if err := ix.(*Flat).Compact(t.Context()); err != nil {
				return err
			}
			return Update(t.Context(), ix, last, query)
		},
	} {
		ix, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		require.NoError(t, change(ix), what)
		assert.Equal(t, Result{last, 0}, find(t, ix, query, nil)[0], what)
		require.NoError(t, ix.Close())
	}
}

// TestFileDamage changes each byte of a file, shortens it, and offers files of other kinds.
func TestFileDamage(t *testing.T) {
	f := flat(t, open(t, "cpu:0"), 2, Euclidean, FlatOptions{})
	require.NoError(t, f.Add(t.Context(), []int64{4, 2}, []float32{1, 2, 3, 4}))
	var b bytes.Buffer
	_, err := f.WriteTo(&b)
	require.NoError(t, err)
	good := b.Bytes()
	load := func(data []byte) error {
		ix, err := Read(t.Context(), bytes.NewReader(data), Options{})
		if err == nil {
			ix.Close()
		}
		return err
	}
	require.NoError(t, load(good))
	list, err := readSections(good)
	require.NoError(t, err)
	covered := make([]bool, len(good)) // all but the zeros between sections
	for i := range covered {
		covered[i] = i < block || i >= len(good)-(len(list)+1)*block
	}
	for entry := good[len(good)-(len(list)+1)*block : len(good)-block]; len(entry) > 0; entry = entry[block:] {
		first, n := binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint64(entry[16:])
		for i := range n {
			covered[first+i] = true
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x41
		err := load(bad)
		switch {
		case !covered[i]:
			assert.NoError(t, err, "byte %d", i)
		case i < len(mark):
			assert.ErrorIs(t, err, runtime.ErrFormat, "byte %d", i)
		case i < 12:
			assert.ErrorIs(t, err, runtime.ErrUnsupported, "byte %d", i)
		default:
			assert.ErrorIs(t, err, runtime.ErrCorrupt, "byte %d", i)
			assert.NotErrorIs(t, err, runtime.ErrFormat, "byte %d", i)
		}
	}
	for n := range good {
		want := runtime.ErrCorrupt
		if n < len(mark) {
			want = runtime.ErrFormat
		}
		assert.ErrorIs(t, load(good[:n]), want, "%d bytes", n)
	}
	assert.ErrorIs(t, load(append(bytes.Clone(good), 0)), runtime.ErrCorrupt)
	assert.ErrorIs(t, load([]byte("PK\x03\x04 something else, and long enough to have a list of sections at its end, if "+
		"it had one")), runtime.ErrFormat)

	path := filepath.Join(t.TempDir(), "index")
	vectors := list[len(list)-1].data
	bad := bytes.Clone(good)
	bad[bytes.Index(good, vectors)] ^= 1
	require.NoError(t, os.WriteFile(path, bad, 0o600))
	ix, err := Open(t.Context(), path, Options{}) // which does not read the vectors
	require.NoError(t, err)
	require.NoError(t, ix.Close())
	_, err = Verify(t.Context(), path)
	assert.ErrorIs(t, err, runtime.ErrCorrupt)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = Verify(ended, path)
	assert.ErrorIs(t, err, context.Canceled)
	for _, s := range list {
		for i := range s.data {
			if s.name == "vectors" || s.name == "config" {
				continue
			}
			bad := bytes.Clone(good)
			bad[block+bytes.Index(good[block:], s.data)+i] ^= 0x41
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			ix, err := Open(t.Context(), path, Options{}) // which reads sizes only
			require.NoError(t, err)
			assert.Equal(t, 2, ix.Info().Len)
			for range 2 {
				_, err = ix.Search(t.Context(), nil, []float32{0, 0}, 9, nil)
				assert.ErrorIs(t, err, runtime.ErrCorrupt, s.name)
			}
			assert.ErrorIs(t, ix.Add(t.Context(), []int64{9}, []float32{1, 2}), runtime.ErrCorrupt, s.name)
			assert.ErrorIs(t, ix.Remove(t.Context(), []int64{4}), runtime.ErrCorrupt, s.name)
			assert.ErrorIs(t, Save(t.Context(), path+"2", ix), runtime.ErrCorrupt, s.name)
			require.NoError(t, ix.Close())
			_, err = LoadInfo(path)
			assert.ErrorIs(t, err, runtime.ErrCorrupt, s.name)
		}
	}
	_, err = Open(t.Context(), filepath.Join(t.TempDir(), "none"), Options{})
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestFileVersion writes the earliest version of the format that has what is in an index.
func TestFileVersion(t *testing.T) {
	dev := open(t, "cpu:0")
	of := func(ix Index, vectors ...float32) uint32 {
		var b bytes.Buffer
		require.NoError(t, ix.Add(t.Context(), counted(len(vectors)), vectors))
		_, err := ix.WriteTo(&b)
		require.NoError(t, err)
		return binary.LittleEndian.Uint32(b.Bytes()[8:])
	}
	f, _, _ := written(t, "cpu:0", Euclidean, FP32)
	assert.Equal(t, uint32(1), of(f))
	assert.Equal(t, uint32(1), of(hnsw(t, dev, 1, Euclidean, HNSWOptions{}), 1, 2, 3))
	assert.Equal(t, uint32(2), of(hnsw(t, dev, 1, Euclidean, HNSWOptions{}), 1, 2, 2), "copies")
	assert.Equal(t, uint32(2), of(hnsw(t, dev, 1, Euclidean, HNSWOptions{Codes: true}), 1, 2, 3), "a centre")
	assert.Equal(t, uint32(2), of(hnsw(t, dev, 1, Cosine, HNSWOptions{Codes: true}), 1, 2, 3), "directions")
}

// TestFileOverlap offers a file with a right list of sections, two of which are the same bytes.
func TestFileOverlap(t *testing.T) {
	var b bytes.Buffer
	w, err := newWriter(&b, version)
	require.NoError(t, err)
	require.NoError(t, w.add(data("one", make([]byte, 100))))
	w.list = append(w.list, w.list...)
	copy(w.list[block:], "two")
	require.NoError(t, w.end())
	_, err = readSections(b.Bytes())
	assert.ErrorIs(t, err, runtime.ErrCorrupt)
}

// TestNames writes and reads files of a directory by good and bad names.
func TestNames(t *testing.T) {
	f, _, query := written(t, "cpu:0", Euclidean, FP32)
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	for _, name := range []string{"a", "a.bin", "sub/b"} {
		require.NoError(t, SaveIn(t.Context(), dir, name, f), name)
		require.NoError(t, SaveIn(t.Context(), dir, name, f), "again")
		ix, err := LoadIn(t.Context(), dir, name, Options{})
		require.NoError(t, err)
		assert.Equal(t, find(t, f, query, nil), find(t, ix, query, nil))
		require.NoError(t, ix.Close())
	}
	for _, name := range []string{"", "..", "../a", "sub/../../a", "a..b", "/etc/a", `\a`, "C:a", "a\x00b", "%2e%2e/a",
		"a%b"} {
		assert.ErrorIs(t, SaveIn(t.Context(), dir, name, f), runtime.ErrInvalidArgument, name)
		_, err := LoadIn(t.Context(), dir, name, Options{})
		assert.ErrorIs(t, err, runtime.ErrInvalidArgument, name)
	}
	require.NoError(t, Save(t.Context(), filepath.Join(outside, "secret.bin"), f))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "way")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.bin"), filepath.Join(dir, "link.bin")))
	assert.Error(t, SaveIn(t.Context(), dir, "way/out", f))
	for _, name := range []string{"way/secret", "link"} {
		_, err := LoadIn(t.Context(), dir, name, Options{})
		assert.Error(t, err, name)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "place.bin"), 0o700))
	assert.Error(t, SaveIn(t.Context(), dir, "place", f))
	_, err := LoadIn(t.Context(), dir, "place", Options{})
	assert.ErrorIs(t, err, runtime.ErrFormat)
	require.NoError(t, os.Remove(filepath.Join(dir, "place.bin")))
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 4, "no temporary file is left: %v", entries)
}

// FuzzRead offers files of any contents: a file that is accepted can be searched, and is written as it is.
func FuzzRead(f *testing.F) {
	dev, err := runtime.Open(f.Context(), "cpu:0")
	require.NoError(f, err)
	defer dev.Close()
	for _, p := range []Precision{FP32, INT8Scaled} {
		ix := flat(f, dev, 2, Euclidean, FlatOptions{Precision: p})
		require.NoError(f, ix.Add(f.Context(), []int64{4, 2}, []float32{1, 2, 3, 4}))
		var b bytes.Buffer
		_, err := ix.WriteTo(&b)
		require.NoError(f, err)
		f.Add(b.Bytes())
	}
	for _, codes := range []bool{false, true} {
		h := hnsw(f, dev, 2, Euclidean, HNSWOptions{M: 2, Codes: codes})
		require.NoError(f, h.Add(f.Context(), counted(12), make([]float32, 24)))
		require.NoError(f, h.Remove(f.Context(), []int64{4}))
		var b bytes.Buffer
		_, err := h.WriteTo(&b)
		require.NoError(f, err)
		f.Add(b.Bytes())
	}
	for _, o := range []IVFOptions{{Probes: 1}, {Lists: 3, Probes: 1}, {Lists: 3, Probes: 2, Codes: 1, Refine: 2}} {
		x := ivf(f, dev, 2, Euclidean, o)
		require.NoError(f, x.Add(f.Context(), counted(48), random(rand.New(rand.NewPCG(35, 36)), 48, 2)))
		var b bytes.Buffer
		_, err := x.WriteTo(&b)
		require.NoError(f, err)
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = readSections(data)
		// by an index that was opened without reading all
		var written error
		if m, err := readImage(sealed(data)); err == nil && m.Dim <= mostDim { // as Open does it
			ix, err := m.index(t.Context(), Options{}, func() {})
			if err == nil {
				_, err = ix.Search(t.Context(), nil, make([]float32, m.Dim), 3, nil)
				if err != nil && !errors.Is(err, runtime.ErrCorrupt) {
					t.Error(err)
				}
				_, written = ix.WriteTo(io.Discard)
				if written != nil && !errors.Is(written, runtime.ErrCorrupt) {
					t.Error(written)
				}
				ix.Close()
			}
		}
		ix, err := Read(t.Context(), bytes.NewReader(sealed(data)), Options{})
		if err != nil {
			return
		}
		defer ix.Close()
		if ix.Info().Dim > mostDim { // the query would be large, not the index
			return
		}
		if _, err := ix.Search(t.Context(), nil, make([]float32, ix.Info().Dim), 3, nil); err != nil {
			t.Error(err)
		}
		if _, err := ix.WriteTo(&bytes.Buffer{}); err != nil || written != nil {
			t.Error(err, written)
		}
	})
}

// sealed returns a file with right checksums wherever its list of sections can be read, so that what they
// protect is read too.
func sealed(data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) < 2*block {
		return data
	}
	tail := data[len(data)-block:]
	at, end := binary.LittleEndian.Uint64(tail), uint64(len(data)-block)
	if at > end {
		return data
	}
	w := &bytes.Buffer{}
	out, err := newWriter(w, version)
	if err != nil {
		return data
	}
	for entry := data[at:end]; len(entry) >= block; entry = entry[block:] {
		first, n := binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint64(entry[16:])
		if first > at || n > at-first {
			return data
		}
		name := string(bytes.TrimRight(entry[:8], "\x00"))
		if err := out.add(section{name: name, data: data[first : first+n]}); err != nil {
			return data
		}
	}
	if err := out.end(); err != nil {
		return data
	}
	return w.Bytes()
}

// TestOpenedTogether uses indexes that were just opened from several goroutines: what is checked and taken from
// the file then is there for all.
func TestOpenedTogether(t *testing.T) {
	const n, dim = 300, 8
	r := rand.New(rand.NewPCG(41, 42))
	vectors := random(r, n, dim)
	for _, kind := range []string{"flat", "hnsw", "ivf", "pq"} {
		ix, err := New(t.Context(), kind, dim, "l2sq", Options{IVF: IVFOptions{Lists: 4, Probes: 4}})
		require.NoError(t, err)
		require.NoError(t, ix.Add(t.Context(), counted(n), vectors))
		want := find(t, ix, vectors[:dim], nil)
		path := filepath.Join(t.TempDir(), kind)
		require.NoError(t, Save(t.Context(), path, ix))
		require.NoError(t, ix.Close())
		ix, err = Open(t.Context(), path, Options{})
		require.NoError(t, err)
		var wait sync.WaitGroup
		for g := range 8 {
			wait.Go(func() {
				assert.GreaterOrEqual(t, ix.Info().Len, n)
				found, err := ix.Search(t.Context(), nil, vectors[:dim], len(want), IDRange(0, n-1))
				assert.NoError(t, err)
				assert.Equal(t, want, found, kind)
				id := int64(n + g)
				assert.NoError(t, ix.Add(t.Context(), []int64{id}, vectors[:dim]))
				assert.NoError(t, ix.Remove(t.Context(), []int64{id}))
				_, err = ix.WriteTo(io.Discard)
				assert.NoError(t, err)
			})
		}
		wait.Wait()
		assert.Equal(t, want, find(t, ix, vectors[:dim], nil), kind)
		require.NoError(t, ix.Close())
	}
}

// TestFileTaken saves indexes of files that are damaged, or were damaged after they were opened: no damage gets
// into a file with right checksums, whatever has read it.
func TestFileTaken(t *testing.T) {
	const n, dim = 60, 4
	ctx, r := t.Context(), rand.New(rand.NewPCG(43, 44))
	ids, vectors := numbers(r, n), random(r, n, dim)
	lazy := []string{"vectors", "codes", "first"} // which neither Open nor a search checks
	mapped := map[string][]string{"flat": {"ids", "vectors"}, "brute": {"ids", "vectors"},
		"ivf": {"ids", "vectors"}, "pq": {"ids", "vectors"},
		"hnsw": {"ids", "level", "first", "upper", "codes", "vectors"}} // what stays in the memory of a file
	for what, o := range map[string]struct {
		kind, device string
		Options
	}{
		"flat":    {kind: "flat"},
		"divided": {kind: "flat", device: "cpu:0,cpu:0"},
		"opencl":  {kind: "gpu", device: "opencl:0"},
		"int8":    {kind: "gpu", device: "opencl:0", Options: Options{Precision: INT8Scaled}},
		"brute":   {kind: "brute"},
		"hnsw":    {kind: "hnsw", Options: Options{HNSW: HNSWOptions{M: 2, EfConstruction: 10}}},
		"codes":   {kind: "hnsw", Options: Options{HNSW: HNSWOptions{M: 2, EfConstruction: 10, Codes: true}}},
		"ivf":     {kind: "ivf", Options: Options{IVF: IVFOptions{Lists: 3}}},
		"pq":      {kind: "pq", Options: Options{IVF: IVFOptions{Lists: 3}}},
		"there":   {kind: "pq", device: "opencl:0", Options: Options{IVF: IVFOptions{Lists: 3}}},
	} {
		t.Run(what, func(t *testing.T) {
			if o.device == "opencl:0" {
				open(t, o.device)
			}
			ix, err := New(ctx, o.kind, dim, "l2sq", o.Options)
			require.NoError(t, err)
			require.NoError(t, ix.Add(ctx, ids, vectors))
			require.NoError(t, ix.Remove(ctx, ids[:1]))
			path := filepath.Join(t.TempDir(), "index")
			to := path + "2"
			require.NoError(t, Save(t.Context(), path, ix))
			require.NoError(t, ix.Close())
			good, err := os.ReadFile(path)
			require.NoError(t, err)
			list, err := readSections(good)
			require.NoError(t, err)
			opened := func() Index {
				ix, err := Open(ctx, path, Options{Device: o.device})
				require.NoError(t, err)
				return ix
			}
			// refuses finds that an index is not saved, nor changed but by removing from a graph, which only marks a vector.
			refuses := func(ix Index, what string) {
				t.Helper()
				require.NoError(t, os.WriteFile(to, []byte("old"), 0o600))
				have := ix.Info().Len
				for range 2 {
					assert.ErrorIs(t, Save(t.Context(), to, ix), runtime.ErrCorrupt, what)
					assert.ErrorIs(t, ix.Add(ctx, []int64{1 << 40}, vectors[:dim]), runtime.ErrCorrupt, what)
					assert.ErrorIs(t, Update(ctx, ix, ids[1], vectors[:dim]), runtime.ErrCorrupt, what)
					assert.ErrorIs(t, ix.(interface{ Compact(context.Context) error }).Compact(ctx), runtime.ErrCorrupt, what)
					if o.kind != "hnsw" {
						assert.ErrorIs(t, ix.Remove(ctx, ids[1:2]), runtime.ErrCorrupt, what)
					}
				}
				assert.Equal(t, have, ix.Info().Len)
				old, err := os.ReadFile(to)
				require.NoError(t, err)
				assert.Equal(t, "old", string(old))
			}
			for _, s := range list {
				if len(s.data) == 0 {
					continue
				}
				first := int(uintptr(unsafe.Pointer(&s.data[0])) - uintptr(unsafe.Pointer(&good[0])))
				bad := bytes.Clone(good)
				bad[first+len(s.data)/2] ^= 1
				require.NoError(t, os.WriteFile(path, bad, 0o600))
				ix, err := Open(ctx, path, Options{Device: o.device})
				if err != nil {
					assert.ErrorIs(t, err, runtime.ErrCorrupt, s.name)
					assert.NotContains(t, lazy, s.name)
					assert.True(t, s.name == "config" || o.device != "", "a device copies what is checked then: %s", s.name)
				} else {
					if slices.Contains(lazy, s.name) {
						find(t, ix, vectors[:dim], nil)
					}
					refuses(ix, s.name)
					require.NoError(t, ix.Close())
				}

				require.NoError(t, os.WriteFile(path, good, 0o600))
				ix = opened()
				find(t, ix, vectors[:dim], nil)
				require.NoError(t, os.WriteFile(path, bad, 0o600)) // in place: goes into the memory of a file that is mapped
				if o.device == "" && slices.Contains(mapped[o.kind], s.name) {
					refuses(ix, s.name)
				} else { // it was copied
					require.NoError(t, Save(t.Context(), to, ix), s.name)
					again, err := os.ReadFile(to)
					require.NoError(t, err)
					assert.True(t, bytes.Equal(good, again), s.name)
				}
				require.NoError(t, ix.Close())
			}

			require.NoError(t, os.WriteFile(path, good, 0o600))
			ix = opened()
			require.NoError(t, Save(t.Context(), to, ix))
			again, err := os.ReadFile(to)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(good, again), "the same index is the same file")
			require.NoError(t, ix.Remove(ctx, ids[1:2]))
			require.NoError(t, Update(ctx, ix, ids[2], vectors[:dim]))
			require.NoError(t, Save(t.Context(), to, ix))
			info, err := Verify(t.Context(), to)
			require.NoError(t, err)
			assert.Equal(t, n-2, info.Len)
			require.NoError(t, ix.Close())
		})
	}
}

// TestFileMakesRoom searches indexes of damaged files whose vectors leave the device no room for a search: to
// move them is no change, and neither fails nor lets the damage into another file.
func TestFileMakesRoom(t *testing.T) {
	const n, dim = 200, 8
	ctx, vectors := t.Context(), random(rand.New(rand.NewPCG(45, 46)), n, dim)
	for what, o := range map[string]struct {
		kind, device string
		limit        int64 // enough for what stays on the device, and too little for a search
	}{
		"divided": {kind: "flat", device: "cpu:0,cpu:0", limit: 4*dim*n + 160},
		"ivf":     {kind: "ivf", limit: 1056},
	} {
		t.Run(what, func(t *testing.T) {
			ix, err := New(ctx, o.kind, dim, "l2sq", Options{})
			require.NoError(t, err)
			require.NoError(t, ix.Add(ctx, counted(n), vectors))
			path := filepath.Join(t.TempDir(), "index")
			require.NoError(t, Save(t.Context(), path, ix))
			require.NoError(t, ix.Close())
			good, err := os.ReadFile(path)
			require.NoError(t, err)
			m, err := readImage(good)
			require.NoError(t, err)
			bad := bytes.Clone(good)
			bad[int(uintptr(unsafe.Pointer(&m.vectors[4*dim*n-4]))-uintptr(unsafe.Pointer(&good[0])))] ^= 1
			for _, data := range [][]byte{good, bad} {
				require.NoError(t, os.WriteFile(path, data, 0o600))
				s, err := runtime.New(runtime.Config{MemoryLimit: o.limit})
				require.NoError(t, err)
				ix, err := Open(ctx, path, Options{Device: o.device, Session: s})
				require.NoError(t, err)
				assert.False(t, ix.Info().Streams)
				found, err := ix.Search(ctx, nil, vectors[:dim], 1, nil)
				require.NoError(t, err)
				assert.Equal(t, []Result{{}}, found)
				assert.True(t, ix.Info().Streams)
				if _, err = ix.WriteTo(io.Discard); bytes.Equal(data, good) {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, runtime.ErrCorrupt)
				}
				require.NoError(t, ix.Close())
				require.NoError(t, s.Close())
			}
		})
	}
}
