package main

// concord search: indexes of nearest neighbours in files.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/internal/mnist"
)

// searching are the flags of the commands of search.
type searching struct {
	vectors, out, kind, metric, precision, device string
	queries, truth, ids                           string
	k, limit                                      int
	hnsw                                          ann.HNSWOptions
}

func (a *app) searchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "search",
		Short: "Find nearest neighbours: build an index, search it, measure it, serve it",
		Long: `Search makes files with an index of vectors, and finds the nearest neighbours of queries in them.

Vectors and queries are files in .fvecs, .bvecs or .ivecs, as the TEXMEX corpora are published, or .npy, a matrix
of numbers with a row for each vector. mnist stands for images of handwritten digits in this program: as vectors
the first 9,000, as queries the other 1,000.`,
		Example: `  concord search build --vectors mnist --out digits.ann
  concord search query digits.ann --queries mnist --k 5
  concord search bench digits.ann --queries mnist
  concord search serve digits.ann`,
		Args: cobra.NoArgs,
		RunE: needsCommand,
	}
	cmd.AddCommand(a.searchBuildCommand(), a.searchQueryCommand(), a.searchInfoCommand(), a.searchVerifyCommand(), a.searchBenchCommand(), a.searchServeCommand())
	return cmd
}

func (a *app) searchBuildCommand() *cobra.Command {
	var s searching
	cmd := &cobra.Command{
		Use:   "build --vectors FILE --out FILE",
		Short: "Make an index of vectors, and write it to a file",
		Long: `Build makes an index of the vectors in a file and writes it to another one, which is replaced as a whole. The id of a
vector is its number in the file, from 0 on, or the number in the same row of --ids, an .ivecs or .npy file with
one column.

Kinds: brute compares each query with all vectors, on the CPU; gpu does that on a device, with vectors of --precision;
hnsw follows the links of a graph, on the CPU, and finds most of the nearest in far less time.

Metrics: euclidean, l2sq, cosine, manhattan, chebyshev, minkowski(p), hamming, jaccard, angular, canberra.`,
		Example: `  concord search build --vectors mnist --out digits.ann
  concord search build --vectors base.fvecs --metric cosine --out base.ann
  concord search build --vectors base.fvecs --kind hnsw --m 24 --ef-search 100 --out base.ann
  concord search build --vectors base.npy --kind gpu --device cpu:0 --precision int8scaled --out base.ann`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&s.vectors, "vectors", "", "the file of vectors, or mnist")
	f.StringVar(&s.out, "out", "", "the file to write")
	f.StringVar(&s.ids, "ids", "", "a file with an id for each vector")
	f.StringVar(&s.kind, "kind", "brute", "the kind of index: brute, gpu or hnsw")
	f.StringVar(&s.metric, "metric", "euclidean", "the measure of distance")
	f.StringVar(&s.precision, "precision", "fp32", "how kind gpu stores vectors: fp32, fp16, int8 or int8scaled")
	f.StringVar(&s.device, "device", "", "the device of kind gpu (default auto)")
	f.IntVar(&s.hnsw.M, "m", 0, "of hnsw: links of a vector (default 16)")
	f.IntVar(&s.hnsw.EfConstruction, "ef-construction", 0, "of hnsw: vectors kept in view while one is added (default 200)")
	f.IntVar(&s.hnsw.EfSearch, "ef-search", 0, "of hnsw: vectors kept in view by a search (default the larger of k and 50)")
	f.Uint64Var(&s.hnsw.Seed, "seed", 0, "of hnsw: the seed of the layers")
	f.BoolVar(&s.hnsw.Codes, "codes", false, "of hnsw: follow the graph by vectors of bytes, which are kept too")
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(ctx context.Context, _ []string) error { return a.searchBuild(ctx, s) })
	return cmd
}

func (a *app) searchQueryCommand() *cobra.Command {
	var s searching
	cmd := &cobra.Command{
		Use:   "query INDEX --queries FILE",
		Short: "Find the nearest neighbours of queries",
		Long: `Query prints for each query the ids and distances of its nearest neighbours, the nearest first. With --ids only ids of
a range are found, both ends included.`,
		Example: `  concord search query digits.ann --queries mnist --limit 3
  concord search query base.ann --queries query.fvecs --k 100 --ids 0:4999 --json`,
		Args: cobra.ExactArgs(1),
	}
	a.queryFlags(cmd, &s)
	cmd.Flags().StringVar(&s.ids, "ids", "", "find only ids of the range FIRST:LAST")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.searchQuery(ctx, args[0], s) })
	return cmd
}

func (a *app) queryFlags(cmd *cobra.Command, s *searching) {
	cmd.Flags().StringVar(&s.queries, "queries", "", "the file of queries, or mnist")
	cmd.Flags().IntVar(&s.k, "k", 10, "neighbours of each query")
	cmd.Flags().IntVar(&s.limit, "limit", 0, "take only so many queries (default all)")
	cmd.Flags().StringVar(&s.device, "device", "", "the device to search on with an index of kind gpu (default auto)")
	cmd.Flags().IntVar(&s.hnsw.EfSearch, "ef-search", 0, "vectors kept in view, with an index of kind hnsw (default that of the index)")
	a.jsonFlag(cmd)
}

func (a *app) searchInfoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "info INDEX",
		Short: "Describe an index",
		Long:  `Info prints what an index is made of. It reads all of the file but the vectors.`,
		Example: `  concord search info digits.ann
  concord search info digits.ann --json`,
		Args: cobra.ExactArgs(1),
	}
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(_ context.Context, args []string) error {
		info, err := ann.ReadInfo(args[0])
		if err != nil {
			return err
		}
		return a.describe(info)
	})
	return cmd
}

func (a *app) searchVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify INDEX",
		Short: "Check the whole file of an index",
		Long:  `Verify compares every part of a file with its checksum, and describes the index. The exit status is 1 if the file is damaged.`,
		Example: `  concord search verify digits.ann
  concord search verify digits.ann --json`,
		Args: cobra.ExactArgs(1),
	}
	a.jsonFlag(cmd)
	cmd.RunE = a.do(func(_ context.Context, args []string) error {
		info, err := ann.Verify(args[0])
		if err != nil {
			return err
		}
		return a.describe(info)
	})
	return cmd
}

func (a *app) searchBenchCommand() *cobra.Command {
	var s searching
	cmd := &cobra.Command{
		Use:   "bench INDEX --queries FILE",
		Short: "Measure how fast an index answers, and how much it finds",
		Long: `Bench searches for each query alone, one after the other, and then for all of them in one call. It reports the time of
a single query (median and 99th percentile), queries per second, and recall: the share of the true neighbours that
were found. These are computed by comparing with all vectors, or are those of --truth, an .ivecs file with the numbers
of the true neighbours in each row.`,
		Example: `  concord search bench digits.ann --queries mnist
  concord search bench base.ann --queries query.fvecs --truth groundtruth.ivecs --k 10 --json`,
		Args: cobra.ExactArgs(1),
	}
	a.queryFlags(cmd, &s)
	cmd.Flags().StringVar(&s.truth, "truth", "", "a file with the true neighbours of each query")
	cmd.RunE = a.do(func(ctx context.Context, args []string) error { return a.searchBench(ctx, args[0], s) })
	return cmd
}

// demoImages are the images that mnist stands for as vectors.
const demoImages = 9000

// vectorsOf reads the vectors of a file, or those that mnist stands for.
func vectorsOf(name string, queries bool) (vectors []float32, dim int, err error) {
	if name != "mnist" {
		return ann.ReadVectors(name)
	}
	images, err := mnist.Images()
	if err != nil {
		return nil, 0, err
	}
	dim = images.Rows * images.Cols
	pixels := images.Pixels[:demoImages*dim]
	if queries {
		pixels = images.Pixels[demoImages*dim:]
	}
	for _, p := range pixels {
		vectors = append(vectors, float32(p))
	}
	return vectors, dim, nil
}

func (a *app) searchBuild(ctx context.Context, s searching) error {
	if s.vectors == "" || s.out == "" {
		return usagef("search build needs --vectors and --out")
	}
	for _, in := range []string{s.vectors, s.ids} {
		if in != "" && sameFile(in, s.out) {
			return usagef("--out %s: it is a file that is read, too", s.out)
		}
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	if _, err := ann.ParseMetric(s.metric); err != nil {
		return usage{err}
	}
	vectors, dim, err := vectorsOf(s.vectors, false)
	if err != nil {
		return err
	}
	ids, err := idsOf(s.ids, len(vectors)/dim)
	if err != nil {
		return err
	}
	if o.Session, err = a.open(exactly); err != nil {
		return err
	}
	o.MaxDim = dim
	ix, err := ann.New(ctx, s.kind, dim, s.metric, o)
	if err != nil {
		return err
	}
	start, each := time.Now(), max(1, len(ids)) // in one call, since the first vectors fix the scale of bytes
	if strings.EqualFold(s.kind, "hnsw") && !s.hnsw.Codes {
		each = max(1000, len(ids)/100)
	}
	bar := a.progress((len(ids) + each - 1) / each)
	for lo := 0; lo < len(ids) && err == nil; lo += each {
		hi := min(lo+each, len(ids))
		err = ix.Add(ctx, ids[lo:hi], vectors[lo*dim:hi*dim])
		bar.step()
	}
	bar.end()
	if err != nil {
		return errors.Join(err, ix.Close())
	}
	took := time.Since(start)
	err = a.save(ctx, s.out, func(w io.Writer) error {
		_, err := ix.WriteTo(w)
		return err
	})
	info := ix.Info()
	if err = errors.Join(err, ix.Close()); err != nil {
		return err
	}
	if a.json {
		return a.print(struct {
			ann.Info
			File    string `json:"file"`
			BuildMs number `json:"build_ms"`
		}{info, s.out, number(took.Seconds() * 1e3)})
	}
	fmt.Fprintf(a.stdout, "%s: %d vectors of %d components, built in %v\n", s.out, info.Len, info.Dim, took.Round(time.Millisecond))
	return nil
}

// options returns the options of a new index.
func (s searching) options() (o ann.Options, err error) {
	if o.Precision, err = ann.ParsePrecision(s.precision); err != nil {
		return o, usage{err}
	}
	o.Device, o.HNSW = s.device, s.hnsw
	switch kind := strings.ToLower(s.kind); kind {
	case "gpu", "brute", "bruteforce", "hnsw":
		if kind == "gpu" {
			o.Device = cmp.Or(o.Device, "auto")
		}
		if kind != "gpu" && (o.Precision != ann.FP32 || o.Device != "") {
			return o, usagef("--precision and --device are for --kind gpu")
		}
		if kind != "hnsw" && s.hnsw != (ann.HNSWOptions{}) {
			return o, usagef("--m, --ef-construction, --ef-search, --seed and --codes are for --kind hnsw")
		}
	default:
		return o, usagef("--kind is brute, gpu or hnsw, not %q", s.kind)
	}
	return o, nil
}

// idsOf reads the ids of n vectors, or returns their numbers.
func idsOf(path string, n int) ([]int64, error) {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(i)
	}
	if path == "" {
		return ids, nil
	}
	list := ids[:0]
	var dim int
	if strings.HasSuffix(strings.ToLower(path), ".ivecs") {
		places, d, err := ann.ReadPlaces(path)
		if err != nil {
			return nil, err
		}
		dim = d
		for _, p := range places {
			list = append(list, int64(p))
		}
	} else {
		numbers, d, err := ann.ReadVectors(path)
		if err != nil {
			return nil, err
		}
		dim = d
		for _, x := range numbers {
			if x != float32(int64(x)) || x >= 1<<24 {
				return nil, fmt.Errorf("%s: %v is not an integer below 2^24; larger ids need .ivecs", path, x)
			}
			list = append(list, int64(x))
		}
	}
	if dim != 1 || len(list) != n {
		return nil, fmt.Errorf("%s: %d columns of %d ids in all, and %d vectors need one each", path, dim, len(list), n)
	}
	return list, nil
}

// withIndex opens an index for f.
func (a *app) withIndex(ctx context.Context, path string, s searching, f func(ix ann.Index) error) error {
	session, err := a.open(exactly)
	if err != nil {
		return err
	}
	info, err := ann.ReadInfo(path)
	switch {
	case err != nil:
		return err
	case info.Kind == "gpu":
		s.device = cmp.Or(s.device, "auto")
	case info.Kind != "flat" && s.device != "":
		return usagef("--device is for an index of kind gpu, and %s is of kind %s", path, info.Kind)
	}
	ix, err := ann.Open(ctx, path, ann.Options{Device: s.device, Session: session})
	if err != nil {
		return err
	}
	if ef := s.hnsw.EfSearch; ef != 0 {
		h, ok := ix.(*ann.HNSW)
		if !ok {
			err = usagef("--ef-search is for an index of kind hnsw")
		} else if err = h.SetEfSearch(ef); err != nil {
			err = usage{err}
		}
	}
	if err == nil {
		err = f(ix)
	}
	return errors.Join(err, ix.Close())
}

func (a *app) describe(i ann.Info) error {
	if a.json {
		return a.print(i)
	}
	rows := [][2]string{{"kind", i.Kind}, {"metric", i.Metric}, {"vectors", strconv.Itoa(i.Len)}, {"components", strconv.Itoa(i.Dim)},
		{"precision", i.Precision}, {"device", i.Device}, {"fallback", i.Fallback}}
	if h := i.HNSW; h != nil {
		rows = append(rows, [2]string{"graph", fmt.Sprintf("m %d, ef-construction %d, ef-search %d, codes %t", h.M, h.EfConstruction, h.EfSearch, h.Codes)})
	}
	for _, r := range rows {
		if r[1] != "" {
			fmt.Fprintf(a.stdout, "%-12s %s\n", r[0], r[1])
		}
	}
	return nil
}

// asked reads the queries for an index.
func (s searching) asked(ix ann.Index) (queries []float32, err error) {
	queries, dim, err := vectorsOf(s.queries, true)
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

func (s searching) check() error {
	switch {
	case s.queries == "":
		return usagef("--queries is missing")
	case s.k < 1:
		return usagef("--k is %d, and at least 1 is needed", s.k)
	case s.limit < 0:
		return usagef("--limit is %d", s.limit)
	}
	return nil
}

// filter returns the filter of --ids.
func (s searching) filter() (*ann.Filter, error) {
	if s.ids == "" {
		return nil, nil
	}
	first, last, ok := strings.Cut(s.ids, ":")
	lo, err := strconv.ParseInt(first, 10, 64)
	hi, err2 := strconv.ParseInt(last, 10, 64)
	if !ok || err != nil || err2 != nil {
		return nil, usagef("--ids is a range FIRST:LAST, not %q", s.ids)
	}
	return ann.IDRange(lo, hi), nil
}

// neighbors are the results of one query in a document.
type neighbors struct {
	Query     int      `json:"query"`
	IDs       []int64  `json:"ids"`
	Distances []number `json:"distances"`
}

func (a *app) searchQuery(ctx context.Context, path string, s searching) error {
	if err := s.check(); err != nil {
		return err
	}
	filter, err := s.filter()
	if err != nil {
		return err
	}
	return a.withIndex(ctx, path, s, func(ix ann.Index) error {
		queries, err := s.asked(ix)
		if err != nil {
			return err
		}
		lists, err := ix.SearchBatch(ctx, queries, s.k, filter)
		if err != nil {
			return err
		}
		found := make([]neighbors, len(lists))
		for q, list := range lists {
			found[q] = neighbors{Query: q, IDs: []int64{}, Distances: []number{}}
			for _, r := range list {
				found[q].IDs, found[q].Distances = append(found[q].IDs, r.ID), append(found[q].Distances, number(r.Distance))
			}
		}
		if a.json {
			return a.print(struct {
				Metric  string      `json:"metric"`
				K       int         `json:"k"`
				Results []neighbors `json:"results"`
			}{ix.Info().Metric, s.k, found})
		}
		for _, n := range found {
			fmt.Fprintf(a.stdout, "%d:", n.Query)
			for i, id := range n.IDs {
				fmt.Fprintf(a.stdout, " %d (%.6g)", id, float64(n.Distances[i]))
			}
			fmt.Fprintln(a.stdout)
		}
		return nil
	})
}

// searchSpeed is the document of search bench.
type searchSpeed struct {
	Index         ann.Info `json:"index"`
	Queries       int      `json:"queries"`
	K             int      `json:"k"`
	Recall        number   `json:"recall"`
	MedianMs      number   `json:"median_ms"` // of one query alone
	P99Ms         number   `json:"p99_ms"`
	PerSecond     number   `json:"queries_per_second"`       // one after the other
	BatchedSecond number   `json:"batch_queries_per_second"` // in one call
}

func (a *app) searchBench(ctx context.Context, path string, s searching) error {
	if err := s.check(); err != nil {
		return err
	}
	return a.withIndex(ctx, path, s, func(ix ann.Index) error {
		queries, err := s.asked(ix)
		if err != nil {
			return err
		}
		m, lists, err := a.timed(ctx, ix, queries, s.k)
		if err != nil {
			return err
		}
		if m.Recall, err = s.recall(ctx, ix, queries, lists); err != nil {
			return err
		}
		if a.json {
			return a.print(m)
		}
		fmt.Fprintf(a.stdout, "%d queries for %d of %d vectors of %d components, %s, %s on %s\n", m.Queries, s.k, m.Index.Len, m.Index.Dim, m.Index.Metric, m.Index.Precision, m.Index.Device)
		fmt.Fprintf(a.stdout, "recall@%d        %.4f\n", s.k, float64(m.Recall))
		fmt.Fprintf(a.stdout, "one query       %.3f ms, 99 %% within %.3f ms, %.0f queries/s\n", float64(m.MedianMs), float64(m.P99Ms), float64(m.PerSecond))
		fmt.Fprintf(a.stdout, "all in one call %.0f queries/s\n", float64(m.BatchedSecond))
		return nil
	})
}

// timed searches for queries one by one and together.
func (a *app) timed(ctx context.Context, ix ann.Index, queries []float32, k int) (m searchSpeed, lists [][]ann.Result, err error) {
	dim := ix.Info().Dim
	n := len(queries) / dim
	m = searchSpeed{Index: ix.Info(), Queries: n, K: k, MedianMs: unknown, P99Ms: unknown, PerSecond: unknown, BatchedSecond: unknown}
	if n == 0 {
		return m, nil, nil
	}
	bar := a.progress(n)
	defer bar.end()
	var dst []ann.Result
	if dst, err = ix.Search(ctx, dst, queries[:dim], k, nil); err != nil { // builds the kernels
		return m, nil, err
	}
	times, whole := make([]float64, n), time.Now()
	for q := range n {
		start := time.Now()
		if dst, err = ix.Search(ctx, dst[:0], queries[q*dim:(q+1)*dim], k, nil); err != nil {
			return m, nil, err
		}
		times[q] = time.Since(start).Seconds()
		bar.step()
	}
	m.PerSecond = number(float64(n) / time.Since(whole).Seconds())
	slices.Sort(times)
	m.MedianMs, m.P99Ms = number(1e3*times[n/2]), number(1e3*times[(n-1)*99/100])
	whole = time.Now()
	lists, err = ix.SearchBatch(ctx, queries, k, nil)
	m.BatchedSecond = number(float64(n) / time.Since(whole).Seconds())
	return m, lists, err
}

// recall returns the share of true neighbours in the lists.
func (s searching) recall(ctx context.Context, ix ann.Index, queries []float32, lists [][]ann.Result) (number, error) {
	if len(lists) == 0 {
		return unknown, nil
	}
	var places []int32
	var dim int
	var err error
	if s.truth != "" {
		if places, dim, err = ann.ReadPlaces(s.truth); err != nil {
			return 0, err
		}
		if dim < s.k || len(places)/dim < len(lists) {
			return 0, fmt.Errorf("%s: %d neighbours of %d queries, and %d of %d are needed", s.truth, dim, len(places)/dim, s.k, len(lists))
		}
	}
	right, all := 0, 0
	for q, list := range lists {
		truth := map[int64]bool{}
		if s.truth != "" {
			for _, p := range places[q*dim : q*dim+s.k] {
				truth[int64(p)] = true
			}
		} else {
			exact, err := ann.Exact(ctx, ix, queries[q*ix.Info().Dim:(q+1)*ix.Info().Dim], s.k, nil)
			if err != nil {
				return 0, err
			}
			for _, r := range exact {
				truth[r.ID] = true
			}
		}
		all += len(truth)
		for _, r := range list {
			if truth[r.ID] {
				right++
			}
		}
	}
	return number(float64(right) / float64(max(all, 1))), nil
}
