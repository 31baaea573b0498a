// Package search builds, searches, measures and serves indexes of nearest neighbours.
package search

// concord search: indexes of nearest neighbours in files.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
)

// searchFlags are the flags of the commands of search.
type searchFlags struct {
	vectors, out, kind, metric, precision, device string
	queries, truth, ids                           string
	k, limit                                      int
	hnsw                                          ann.HNSWOptions
	ivf                                           ann.IVFOptions
	seed                                          uint64
}

// Command returns the command search.
func Command(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "search",
		Short: "Find nearest neighbours: build an index, search it, measure it, serve it",
		Long: `Search makes files with an index of vectors, and finds the nearest neighbours of queries in them.

Vectors and queries are files in .fvecs, .bvecs or .ivecs, as the TEXMEX corpora are published, or
.npy, a matrix of numbers with a row for each vector; components are rounded to float, and integers
beyond 2^24 refused. mnist stands for images of handwritten digits in this program: as vectors the
first 9,000, as queries the other 1,000.`,
		Example: `  concord search build --vectors mnist --out digits.ann
  concord search query digits.ann --queries mnist --k 5
  concord search bench digits.ann --queries mnist
  concord search serve digits.ann`,
		Args: cobra.NoArgs,
		RunE: app.NeedsCommand,
	}
	cmd.AddCommand(searchBuildCommand(a), searchQueryCommand(a), searchBenchCommand(a), searchServeCommand(a),
		describing(a, "info", "Describe an index",
			`Info prints what an index is made of. It checks all of the file but vectors, their codes, and the
links in the first layer of a graph, which verify checks too.`,
			func(_ context.Context, path string) (ann.Info, error) { return ann.LoadInfo(path) }),
		describing(a, "verify", "Check the whole file of an index",
			`Verify compares every part of a file with its checksum, checks that the links of a graph lead to all
of its vectors, and describes the index. The exit status is 1 if the file is damaged.`, ann.Verify))
	return cmd
}

func searchBuildCommand(a *app.App) *cobra.Command {
	var s searchFlags
	cmd := &cobra.Command{
		Use:   "build --vectors FILE --out FILE",
		Short: "Make an index of vectors, and write it to a file",
		Long: `Build makes an index of the vectors in a file and writes it to another one, which is replaced as a
whole. The id of a vector is its number in the file, from 0 on, or the number in the same row of
--ids, an .ivecs file of one column, or an .npy file of i64, i32 or u32. A FILE of --out that is
there already is replaced only if it is an index or empty.

Kinds: brute compares each query with all vectors, on the CPU; gpu does that on a device, with
vectors of --precision, and flat on the one of --device, or the CPU; hnsw follows the links of a
graph, on the CPU, and finds most of the nearest in far less time; ivf does so too, on the CPU or
the device that is named: it compares with the vectors in some of its lists. pq keeps a short code
for each vector of a list too, compares these, and then the vectors with the nearest codes: it is
for millions of vectors.

Metrics: euclidean, l2sq, cosine, manhattan, chebyshev, minkowski(p), hamming, jaccard, angular, canberra.`,
		Example: `  concord search build --vectors mnist --out digits.ann
  concord search build --vectors base.fvecs --metric cosine --out base.ann
  concord search build --vectors base.fvecs --kind hnsw --m 24 --ef-search 100 --out base.ann
  concord search build --vectors base.fvecs --kind ivf --lists 1024 --probes 16 --out base.ann
  concord search build --vectors base.fvecs --kind pq --code-bytes 16 --refine 50 --out base.ann
  concord search build --vectors base.npy --kind gpu --device cpu:0 --precision int8scaled --out base.ann`,
		Args: cobra.ExactArgs(0),
	}
	f := cmd.Flags()
	f.StringVar(&s.vectors, "vectors", "", "the file of vectors, or mnist")
	f.StringVar(&s.out, "out", "", "the file to write")
	f.StringVar(&s.ids, "ids", "", "a file with an id for each vector")
	f.StringVar(&s.kind, "kind", "brute", "the kind of index: brute, flat, gpu, hnsw, ivf or pq")
	f.StringVar(&s.metric, "metric", "euclidean", "the measure of distance")
	f.StringVar(&s.precision, "precision", "fp32", "how kinds gpu, flat, ivf and pq store vectors: fp32, fp16, int8 (of "+
		"components from -1 to 1, others are cut) or int8scaled (of any range)")
	f.StringVar(&s.device, "device", "", "the device of kind gpu (default auto), or of flat, ivf and pq (default "+
		"cpu:0); of gpu and flat also several, separated by commas")
	f.IntVar(&s.hnsw.M, "m", 0, "of hnsw: links of a vector (default 16)")
	f.IntVar(&s.hnsw.EfConstruction, "ef-construction", 0,
		"of hnsw: vectors kept in view while one is added (default 200)")
	f.IntVar(&s.hnsw.EfSearch, "ef-search", 0,
		"of hnsw: vectors kept in view by a search (default the larger of k and 50)")
	f.Uint64Var(&s.seed, "seed", 0, "of hnsw, ivf and pq: the seed of the layers, or of the lists")
	f.IntVar(&s.ivf.Lists, "lists", 0, "of ivf and pq: lists, which are made once there are 16 vectors for each "+
		"(default about 4·√n for n vectors, from 4096 vectors on)")
	f.IntVar(&s.ivf.Probes, "probes", 0, "of ivf and pq: lists that a search reads (default 16)")
	f.IntVar(&s.ivf.Codes, "code-bytes", 0, "of pq: bytes of a code, each for two or more components (default a bit for "+
		"each component, up to 128 bytes)")
	f.IntVar(&s.ivf.Refine, "refine", 0, "of pq: vectors that are compared for each result (default 20)")
	f.BoolVar(&s.hnsw.Codes, "codes", false, "of hnsw: follow the graph by vectors of bytes, which are kept too")
	return a.RunnableJSON(cmd, func(ctx context.Context, _ []string) error { return searchBuild(ctx, a, s) })
}

func searchQueryCommand(a *app.App) *cobra.Command {
	var s searchFlags
	cmd := &cobra.Command{
		Use:   "query INDEX --queries FILE",
		Short: "Find the nearest neighbours of queries",
		Long: `Query prints for each query the ids and distances of its nearest neighbours, the nearest first. With
--ids only ids of a range are found, both ends included.`,
		Example: `  concord search query digits.ann --queries mnist --limit 3
  concord search query base.ann --queries query.fvecs --k 100 --ids 0:4999 --json`,
		Args: cobra.ExactArgs(1),
	}
	queryFlags(cmd, &s)
	cmd.Flags().StringVar(&s.ids, "ids", "", "find only ids of the range FIRST:LAST")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error { return searchQuery(ctx, a, args[0], s) })
}

func queryFlags(cmd *cobra.Command, s *searchFlags) {
	cmd.Flags().StringVar(&s.queries, "queries", "", "the file of queries, or mnist")
	cmd.Flags().IntVar(&s.k, "k", 10, "neighbours of each query")
	cmd.Flags().IntVar(&s.limit, "limit", 0, "take only so many queries (default all)")
	cmd.Flags().StringVar(&s.device, "device", "", "the device to search on with an index of kind gpu (default auto), "+
		"flat, ivf or pq (default cpu:0); or several, separated by commas, but for ivf and pq")
	effortFlags(cmd, s)
}

// effortFlags adds the flags of how much searches compare.
func effortFlags(cmd *cobra.Command, s *searchFlags) {
	cmd.Flags().IntVar(&s.hnsw.EfSearch, "ef-search", 0, "vectors kept in view, with an index of kind hnsw (default "+
		"that of the index)")
	cmd.Flags().IntVar(&s.ivf.Probes, "probes", 0, "lists to read, with an index of kind ivf or pq (default that of "+
		"the index)")
	cmd.Flags().IntVar(&s.ivf.Refine, "refine", 0, "vectors to compare for each result, with an index of kind pq "+
		"(default that of the index)")
}

// describing returns a command that describes an index.
func describing(a *app.App, name, short, long string,
	read func(ctx context.Context, path string) (ann.Info, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " INDEX", Short: short, Long: long, Args: cobra.ExactArgs(1),
		Example: "  concord search " + name + " digits.ann\n  concord search " + name + " digits.ann --json",
	}
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error {
		info, err := read(ctx, args[0])
		if err != nil {
			return err
		}
		return describe(a, info)
	})
}

func searchBenchCommand(a *app.App) *cobra.Command {
	var s searchFlags
	cmd := &cobra.Command{
		Use:   "bench INDEX --queries FILE",
		Short: "Measure how fast an index answers, and how much it finds",
		Long: `Bench searches for each query alone, one after the other, and then for all of them in one call. It
reports the time of a single query (median and 99th percentile), queries per second, and recall: the
share of the true neighbours that were found, or of others at the distance of the last of these.
They are computed by comparing with all vectors as the index stores them, which says nothing of what
halves or bytes lose, or are those of --truth, an .ivecs file, or an .npy file of i64, i32 or u32,
with the ids of the true neighbours in each row: without --ids, their numbers in the file of
vectors. With --truth, an index of halves or bytes has to find these themselves.`,
		Example: `  concord search bench digits.ann --queries mnist
  concord search bench base.ann --queries query.fvecs --truth groundtruth.ivecs --k 10 --json`,
		Args: cobra.ExactArgs(1),
	}
	queryFlags(cmd, &s)
	cmd.Flags().StringVar(&s.truth, "truth", "", "a file with the true neighbours of each query")
	return a.RunnableJSON(cmd, func(ctx context.Context, args []string) error { return searchBench(ctx, a, args[0], s) })
}

// withIndex opens an index for f.
func withIndex(ctx context.Context, a *app.App, path string, s searchFlags, f func(ix ann.Index) error) error {
	session, err := a.Open(app.Exactly)
	if err != nil {
		return err
	}
	info, err := ann.LoadInfo(path)
	switch {
	case err != nil:
		return err
	case info.Kind == "gpu":
		s.device = cmp.Or(s.device, "auto")
	case info.Kind != "flat" && info.IVF == nil && s.device != "":
		return app.Usagef("--device is for an index of kind gpu, flat, ivf or pq, and %s is of kind %s", path, info.Kind)
	case info.IVF != nil && strings.Contains(s.device, ","):
		return app.Usagef("--device %s: an index of kind %s, such as %s, is on one device", s.device, info.Kind, path)
	}
	ix, err := ann.Open(ctx, path, ann.Options{Device: s.device, Session: session})
	if err != nil {
		return err
	}
	if ef := s.hnsw.EfSearch; ef != 0 {
		h, ok := ix.(*ann.HNSW)
		if !ok {
			err = app.Usagef("--ef-search is for an index of kind hnsw")
		} else if err = h.SetEfSearch(ef); err != nil {
			err = app.UsageError(err)
		}
	}
	if n := s.ivf.Probes; n != 0 && err == nil {
		x, ok := ix.(*ann.IVF)
		if !ok {
			err = app.Usagef("--probes is for an index of kind ivf or pq")
		} else if err = x.SetProbes(n); err != nil {
			err = app.UsageError(err)
		}
	}
	if n := s.ivf.Refine; n != 0 && err == nil {
		if info.Kind != "pq" {
			err = app.Usagef("--refine is for an index of kind pq")
		} else if err = ix.(*ann.IVF).SetRefine(n); err != nil {
			err = app.UsageError(err)
		}
	}
	if err == nil {
		err = f(ix)
	}
	return errors.Join(err, ix.Close())
}

func describe(a *app.App, i ann.Info) error {
	return a.Show(i, func() {
		rows := [][2]string{{"kind", i.Kind}, {"metric", i.Metric}, {"vectors", strconv.Itoa(i.Len)},
			{"components", strconv.Itoa(i.Dim)},
			{"precision", i.Precision}, {"device", i.Device}, {"fallback", i.Fallback}}
		if i.Streams {
			rows = append(rows, [2]string{"memory", "the host's: the device has no room for the vectors"})
		}
		if h := i.HNSW; h != nil {
			ef := "k, at least 50"
			if h.EfSearch > 0 {
				ef = strconv.Itoa(h.EfSearch)
			}
			rows = append(rows, [2]string{
				"graph", fmt.Sprintf("m %d, ef-construction %d, ef-search %s, codes %t", h.M, h.EfConstruction, ef, h.Codes)})
		}
		if l := i.IVF; l != nil {
			rows = append(rows, [2]string{"lists", fmt.Sprintf("%d, probes %d", l.Lists, l.Probes)})
			if l.Codes > 0 {
				rows = append(rows, [2]string{"codes", fmt.Sprintf("%s, refine %d", ui.Quantity(l.Codes, "byte"), l.Refine)})
			}
		}
		for _, r := range rows {
			if r[1] != "" {
				a.Printf("%-12s %s\n", r[0], r[1])
			}
		}
	})
}

// asked reads the queries for an index.
func (s searchFlags) readQueries(ctx context.Context, ix ann.Index) (queries []float32, err error) {
	queries, dim, err := vectorsOf(ctx, s.queries, true)
	if err != nil {
		return nil, err
	}
	if want := ix.Info().Dim; dim != want {
		return nil, fmt.Errorf("%s: queries of %d components, and the index has vectors of %d", s.queries, dim, want)
	}
	if s.limit > 0 && s.limit < len(queries)/dim {
		queries = queries[:s.limit*dim]
	}
	return queries, nil
}

func (s searchFlags) check() error {
	switch {
	case s.queries == "":
		return app.Usagef("--queries is missing")
	case s.k < 1:
		return app.Usagef("--k is %d, and at least 1 is needed", s.k)
	case s.limit < 0:
		return app.Usagef("--limit is %d", s.limit)
	}
	return nil
}

// filter returns the filter of --ids.
func (s searchFlags) filter() (*ann.Filter, error) {
	if s.ids == "" {
		return nil, nil
	}
	first, last, ok := strings.Cut(s.ids, ":")
	lo, err := strconv.ParseInt(first, 10, 64)
	hi, err2 := strconv.ParseInt(last, 10, 64)
	if !ok || err != nil || err2 != nil {
		return nil, app.Usagef("--ids is a range FIRST:LAST, not %q", s.ids)
	}
	if lo > hi {
		return nil, app.Usagef("--ids %s: the range ends before it begins", s.ids)
	}
	return ann.IDRange(lo, hi), nil
}

// neighbors are the results of one query in a document.
type neighbors struct {
	Query     int          `json:"query"`
	IDs       []int64      `json:"ids"`
	Distances []app.Number `json:"distances"`
}

func searchQuery(ctx context.Context, a *app.App, path string, s searchFlags) error {
	if err := s.check(); err != nil {
		return err
	}
	filter, err := s.filter()
	if err != nil {
		return err
	}
	return withIndex(ctx, a, path, s, func(ix ann.Index) error {
		queries, err := s.readQueries(ctx, ix)
		if err != nil {
			return err
		}
		lists, err := ix.SearchBatch(ctx, queries, s.k, filter)
		if err != nil {
			return err
		}
		found := make([]neighbors, len(lists))
		for q, list := range lists {
			found[q] = neighbors{Query: q, IDs: []int64{}, Distances: []app.Number{}}
			for _, r := range list {
				found[q].IDs, found[q].Distances = append(found[q].IDs, r.ID), append(found[q].Distances, app.Number(r.Distance))
			}
		}
		return a.Show(struct {
			Metric  string      `json:"metric"`
			K       int         `json:"k"`
			Results []neighbors `json:"results"`
		}{ix.Info().Metric, s.k, found}, func() {
			for _, n := range found {
				a.Printf("%d:", n.Query)
				for i, id := range n.IDs {
					a.Printf(" %d (%.6g)", id, float64(n.Distances[i]))
				}
				a.Println()
			}
		})
	})
}
