package main

// Searches of package ann, with everything that a call does, beside FAISS, and beside the kernel alone.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/source"
)

// flatSizes are vectors, dimension and queries of a call.
var flatSizes = [][3]int{{10_000, 64, 1}, {100_000, 128, 1}, {l2Vectors, l2Dim, 1}, {l2Vectors, l2Dim, 16},
	{l2Vectors, l2Dim, 256}}

// flat measures an index of floats beside FAISS, and indexes of half and bytes and a search with a filter
// beside that of floats.
func (b *bench) flat() error {
	for _, s := range flatSizes {
		vectors, dim, queries := s[0], s[1], s[2]
		what := fmt.Sprintf("%d of %d × %d", queries, vectors, dim)
		if !b.wanted(what) && !b.wanted(what+" kernel") && !b.wanted(what+" int8") && !b.wanted(what+" fp16") &&
			!b.wanted(what+" 1 %") {
			continue
		}
		rows, asked := uniform(vectors*dim, 1), uniform(queries*dim, 2)
		ids := make([]int64, vectors)
		for i := range ids {
			ids[i] = int64(i)
		}
		index := func(p ann.Precision) (*ann.Flat, error) {
			f, err := ann.NewFlat(b.whole, dim, ann.L2Squared, ann.FlatOptions{Precision: p})
			if err == nil {
				err = f.Add(b.ctx, ids, rows)
			}
			return f, err
		}
		search := func(f *ann.Flat, filter *ann.Filter) func() error {
			dst := make([]ann.Result, 0, l2Nearest)
			return func() error {
				if queries > 1 {
					_, err := f.SearchBatch(b.ctx, asked, l2Nearest, filter)
					return err
				}
				_, err := f.Search(b.ctx, dst, asked, l2Nearest, filter)
				return err
			}
		}
		floats, err := index(ann.FP32)
		if err != nil {
			return err
		}
		defer floats.Close()
		work, name := 3*float64(queries)*float64(vectors)*float64(dim), "Flat"
		if b.wanted(what) {
			faiss, err := b.peer("faiss", map[string]any{"vectors": vectors, "dim": dim, "queries": queries, "k": l2Nearest},
				"knn")
			if err != nil {
				return err
			}
			if err := b.compare(subject{what: what, work: work, unit: gflops, name: name, run: search(floats, nil)},
				faiss); err != nil {
				return err
			}
		}
		if queries > 16 {
			continue
		}
		p, err := b.prepare("nearest", []source.Define{{Name: "METRIC", Value: "l2"}}, "nearest", 4*queries*dim,
			4*vectors*dim,
			4*queries*l2Nearest, 4*queries*l2Nearest, uint32(queries), uint32(vectors), uint32(dim), uint32(l2Nearest),
			uint32(1))
		if err != nil {
			return err
		}
		for i, x := range p.buffers[:2] {
			components(x, 4, i)
		}
		err = b.compare(subject{what: what + " kernel", work: work, unit: gflops, name: name, run: search(floats, nil)},
			inProcess("the kernel", "", p.run))
		p.free()
		if err != nil {
			return err
		}
		for _, c := range []struct {
			what      string
			precision ann.Precision
			filter    *ann.Filter
		}{{"fp16", ann.FP16, nil}, {"int8", ann.INT8, nil},
			{"1 %", ann.FP32, ann.Predicate(func(id int64) bool { return id%100 == 7 })}} {
			f := floats
			if c.filter == nil {
				if f, err = index(c.precision); err != nil {
					return err
				}
			}
			err := b.compare(subject{what: what + " " + c.what, work: work, unit: gflops, name: name + " " + c.what,
				run: search(f, c.filter)},
				inProcess("fp32, all", "", search(floats, nil)))
			if f != floats {
				f.Close()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// uniform returns numbers from 0 to 1.
func uniform(n int, seed uint64) []float32 {
	r, x := rand.New(rand.NewPCG(seed, seed)), make([]float32, n)
	for i := range x {
		x[i] = r.Float32()
	}
	return x
}

// graphRecall is the share of the 10 nearest that searches in graphs have to find.
const graphRecall = 0.99

// graph measures HNSW beside hnswlib, on images of digits and on clustered vectors, which both read from a file.
func (b *bench) graph() error {
	images, err := mnist.Images()
	if err != nil {
		return err
	}
	digits := make([]float32, len(images.Pixels))
	for i, p := range images.Pixels {
		digits[i] = float32(p)
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rows.npy")
	if err := b.graphOf(path, "9000 × 784 digits", true, images.Rows*images.Cols, digits); err != nil {
		return err
	}
	return b.graphOf(path, "200000 × 64 in clusters", false, 64, clusters(201_000, 64))
}

// graphOf measures an index of all rows but the last 1000, which are the queries, of floats and with codes:
// building it, if asked for, and searching with the fewest vectors in view that reach the recall.
func (b *bench) graphOf(path, name string, builds bool, dim int, all []float32) error {
	if err := ann.WriteVectors(path, all, dim); err != nil {
		return err
	}
	n := len(all)/dim - 1000
	ids, rows, asked := make([]int64, n), all[:n*dim], all[n*dim:]
	for i := range ids {
		ids[i] = int64(i)
	}
	build := func(threads int, codes bool) (ix *ann.HNSW, err error) {
		if ix, err = ann.NewHNSW(b.whole, dim, ann.L2Squared, ann.HNSWOptions{InitialCapacity: n, Threads: threads,
			Codes: codes}); err == nil {
			err = ix.Add(b.ctx, ids, rows)
		}
		return ix, err
	}
	args := func(threads int) map[string]any {
		return map[string]any{"path": path, "n": n, "recall": graphRecall, "k": l2Nearest, "threads": threads}
	}
	if what := name + ", memory"; b.wanted(what) {
		if err := b.graphMemory(what, n, func() (*ann.HNSW, error) { return build(b.threads, false) },
			args(b.threads)); err != nil {
			return err
		}
	}
	for _, codes := range []bool{false, true} {
		kind := map[bool]string{true: ", codes"}[codes]
		for _, threads := range []int{b.threads, 1} {
			few := map[bool]string{true: ", one thread"}[threads == 1]
			what := name + ", build" + kind + few
			if !builds || !b.wanted(what) || threads == 1 && codes {
				continue
			}
			peer, err := b.peer("hnswlib", args(threads), "hnsw_build")
			if err != nil {
				return err
			}
			if err := b.compare(subject{what: what, work: 1e9 * float64(n), unit: "vectors/s", name: "HNSW", run: func() error {
				ix, err := build(threads, codes)
				if err == nil {
					err = ix.Close()
				}
				return err
			}}, peer); err != nil {
				return err
			}
		}
		what := name + ", search" + kind
		alone := what + ", one thread" // a call for each query
		if !b.wanted(what) && !b.wanted(alone) {
			continue
		}
		ix, err := build(b.threads, codes)
		if err == nil && b.wanted(what) {
			err = b.reach(ix, what, asked, dim, false, graphRecall, "HNSW, ef", 5, 500, ix.SetEfSearch, "hnswlib", "hnsw_search",
				args(b.threads))
		}
		if err == nil && b.wanted(alone) {
			err = b.reach(ix, alone, asked, dim, true, graphRecall, "HNSW, ef", 5, 500, ix.SetEfSearch, "hnswlib", "hnsw_search",
				args(1))
		}
		if err = errors.Join(err, ix.Close()); err != nil {
			return err
		}
	}
	return nil
}

// graphMemory says by how much building an index lets the memory of a process grow, beside the same of hnswlib,
// for each vector.
func (b *bench) graphMemory(what string, n int, build func() (*ann.HNSW, error), args map[string]any) error {
	if _, err := b.whole.Memory().Trim(0); err != nil {
		return err
	}
	before, err := resident()
	if err != nil {
		return err
	}
	ix, err := build()
	if err != nil {
		return err
	}
	after, err := resident()
	if err = errors.Join(err, ix.Close()); err != nil {
		return err
	}
	note, _, err := b.try(b.features.peerSettings("hnswlib")[0], "hnsw_memory", args)
	if err != nil {
		note = err.Error()
	}
	b.say("%-7s %s: HNSW %d bytes for each vector, %s", b.suite, what, (after-before)/n, note)
	return nil
}

// resident returns the bytes of memory that this process uses.
func resident() (int, error) {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	var all, pages int
	if err == nil {
		_, err = fmt.Sscan(string(text), &all, &pages)
	}
	return pages * os.Getpagesize(), err
}

// reach measures the search of an index, in one call or with a call for each query, with the least effort that
// reaches a recall, in steps below a limit, beside a peer that does the same.
func (b *bench) reach(ix ann.Index, what string, asked []float32, dim int, alone bool, recall float64, name string,
	step, limit int, set func(effort int) error,
	library, call string, args map[string]any) error {
	truth, err := exactly(b.ctx, ix, asked, dim)
	if err != nil {
		return err
	}
	for effort := 2 * step; effort < limit; effort += step {
		if err := set(effort); err != nil {
			return err
		}
		lists, err := ix.SearchBatch(b.ctx, asked, l2Nearest, nil)
		if err != nil {
			return err
		}
		share := shareOf(lists, truth)
		if share < recall {
			continue
		}
		peer, err := b.peer(library, args, call)
		if err != nil {
			return err
		}
		return b.compare(subject{what: what, work: 1e9 * float64(len(lists)), unit: "queries/s",
			name: fmt.Sprintf("%s %d, recall %.4f", name, effort, share),
			run: func() (err error) {
				if !alone {
					_, err = ix.SearchBatch(b.ctx, asked, l2Nearest, nil)
				}
				found := make([]ann.Result, 0, l2Nearest)
				for q := 0; alone && q < len(asked) && err == nil; q += dim {
					_, err = ix.Search(b.ctx, found, asked[q:q+dim], l2Nearest, nil)
				}
				return err
			}}, peer)
	}
	return fmt.Errorf("%s: nothing below %d reaches the recall", what, limit)
}

const (
	listVectors, listDim, lists = 1_000_000, 128, 1024
	listRecall                  = 0.95
)

// listed returns the vectors that lists are made of, with their numbers, and the queries. It writes all of them
// to a file.
func listed(path string) (ids []int64, rows, asked []float32, err error) {
	all := clusters(listVectors+1000, listDim)
	for i := range listVectors {
		ids = append(ids, int64(i))
	}
	return ids, all[:listVectors*listDim], all[listVectors*listDim:], ann.WriteVectors(path, all, listDim)
}

// lists measures IVF beside FAISS: making the same number of lists of the same vectors, from samples of the
// same size, and searching some of them.
func (b *bench) lists() error {
	build, search := fmt.Sprintf("%d × %d in clusters, %d lists, build", listVectors, listDim, lists),
		fmt.Sprintf("%d × %d in clusters, %d lists, search", listVectors, listDim, lists)
	one := search + " one at a time"
	if !b.wanted(build) && !b.wanted(search) && !b.wanted(one) {
		return nil
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rows.npy")
	ids, rows, asked, err := listed(path)
	if err != nil {
		return err
	}
	make := func() (*ann.IVF, error) {
		ix, err := ann.NewIVF(b.whole, listDim, ann.L2Squared, ann.IVFOptions{Lists: lists})
		if err == nil {
			err = ix.Add(b.ctx, ids, rows)
		}
		return ix, err
	}
	args := map[string]any{"path": path, "n": listVectors, "lists": lists, "recall": listRecall, "k": l2Nearest}
	if b.wanted(search) || b.wanted(one) {
		ix, err := make()
		if err != nil {
			return err
		}
		defer ix.Close()
		for _, c := range [][2]string{{search, "ivf_search"}, {one, "ivf_search_one"}} {
			if !b.wanted(c[0]) {
				continue
			}
			if err := b.reach(ix, c[0], asked, listDim, c[0] == one, listRecall, "IVF, probes", 1, lists, ix.SetProbes, "faiss",
				c[1], args); err != nil {
				return err
			}
		}
	}
	if !b.wanted(build) {
		return nil
	}
	peer, err := b.peer("faiss", args, "ivf_build")
	if err != nil {
		return err
	}
	return b.compare(subject{what: build, work: 1e9 * listVectors, unit: "vectors/s", name: "IVF", run: func() error {
		ix, err := make()
		if err == nil {
			err = ix.Close()
		}
		return err
	}}, peer)
}

const codeBytes, codeProbes = 16, 64

// codes measures codes of 16 bytes in lists beside both kinds of FAISS: making them, comparing them alone, and
// searches with vectors at a recall, for which each side tries numbers of lists and of vectors that are
// compared, and takes those with which it is fastest.
func (b *bench) codes() error {
	name := fmt.Sprintf("%d × %d in clusters, %d lists, codes of %d bytes", listVectors, listDim, lists, codeBytes)
	build, scan, search := name+", build", fmt.Sprintf("%s, %d lists by codes", name, codeProbes), name+", search"
	if !b.wanted(build) && !b.wanted(scan) && !b.wanted(search) {
		return nil
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rows.npy")
	ids, rows, asked, err := listed(path)
	if err != nil {
		return err
	}
	peers := func(probes int, refine []int, truth [][]int64, call string) (list []contender, err error) {
		args := map[string]any{"path": path, "n": listVectors, "lists": lists, "recall": listRecall, "probes": probes,
			"refine": refine, "truth": truth, "k": l2Nearest}
		for _, bits := range []string{"_8", "_4"} {
			p, err := b.peer("faiss", args, call+bits)
			if err != nil {
				return list, err
			}
			list = append(list, p)
		}
		return list, nil
	}
	make := func() (*ann.IVF, error) {
		ix, err := ann.NewIVF(b.whole, listDim, ann.L2Squared, ann.IVFOptions{Lists: lists, Codes: codeBytes})
		if err == nil {
			err = ix.Add(b.ctx, ids, rows)
		}
		return ix, err
	}
	ix, err := make()
	if err != nil {
		return err
	}
	defer ix.Close()
	var truth [][]ann.Result
	if b.wanted(scan) || b.wanted(search) {
		if truth, err = exactly(b.ctx, ix, asked, listDim); err != nil {
			return err
		}
	}
	var places [][]int64
	for _, list := range truth {
		var row []int64
		for _, r := range list {
			row = append(row, r.ID)
		}
		places = append(places, row)
	}
	var found [][]ann.Result
	ask := func() (err error) { found, err = ix.SearchBatch(b.ctx, asked, l2Nearest, nil); return err }
	try := func(probes, refine int) (share float64, err error) {
		if err = errors.Join(ix.SetProbes(probes), ix.SetRefine(refine)); err == nil {
			err = ask()
		}
		return shareOf(found, truth), err
	}
	compare := func(what, note string, others []contender) error {
		return b.compare(subject{what: what, work: 1e9 * float64(len(truth)), unit: "queries/s", name: note, run: ask},
			others...)
	}
	if b.wanted(scan) {
		share, err := try(codeProbes, 1)
		if err != nil {
			return err
		}
		others, err := peers(codeProbes, nil, places, "pq_search")
		if err != nil {
			return err
		}
		if err := compare(scan, fmt.Sprintf("codes, recall %.4f", share), others); err != nil {
			return err
		}
	}
	if b.wanted(search) {
		var best time.Duration
		refine, with, chosen := []int{20, 50, 70, 100, 150}, [2]int{}, 0.0
		for _, n := range refine {
			for probes := 6; probes <= 32; probes++ {
				share, err := try(probes, n)
				if err != nil {
					return err
				}
				if share < listRecall {
					continue
				}
				start := time.Now()
				if err := ask(); err != nil {
					return err
				}
				if took := time.Since(start); best == 0 || took < best {
					best, with, chosen = took, [2]int{probes, n}, share
				}
				break
			}
		}
		if best == 0 {
			return fmt.Errorf("%s: nothing reaches the recall", search)
		}
		others, err := peers(0, refine, places, "pq_search")
		if err != nil {
			return err
		}
		if _, err := try(with[0], with[1]); err != nil {
			return err
		}
		if err := compare(search, fmt.Sprintf("codes, refine %d, probes %d, recall %.4f", with[1], with[0], chosen),
			others); err != nil {
			return err
		}
	}
	if !b.wanted(build) {
		return nil
	}
	others, err := peers(0, nil, nil, "pq_build")
	if err != nil {
		return err
	}
	return b.compare(subject{what: build, work: 1e9 * listVectors, unit: "vectors/s", name: "codes", run: func() error {
		ix, err := make()
		if err == nil {
			err = ix.Close()
		}
		return err
	}}, others...)
}

// shareOf returns the share of the true neighbours that were found.
func shareOf(found, truth [][]ann.Result) float64 {
	right := 0
	for q, list := range found {
		for _, r := range list {
			if slices.Contains(truth[q], r) {
				right++
			}
		}
	}
	return float64(right) / float64(l2Nearest*len(found))
}

// exactly returns the nearest of each query.
func exactly(ctx context.Context, ix ann.Index, asked []float32, dim int) (lists [][]ann.Result, err error) {
	for len(asked) > 0 && err == nil {
		var list []ann.Result
		list, err = ann.Exact(ctx, ix, asked[:dim], l2Nearest, nil)
		lists, asked = append(lists, list), asked[dim:]
	}
	return lists, err
}

// clusters returns vectors around 100 centres.
func clusters(n, dim int) []float32 {
	r, centres, x := rand.New(rand.NewPCG(3, 3)), uniform(100*dim, 4), make([]float32, n*dim)
	for i := range x {
		x[i] = centres[i/dim%100*dim+i%dim] + 0.1*float32(r.NormFloat64())
	}
	return x
}
