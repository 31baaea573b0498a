package search

// concord search build: vectors of files become an index.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/concord-compute/concord/ann"
	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/internal/mnist"
	"github.com/concord-compute/concord/runtime/driver"
)

// demoImages are the images that mnist stands for as vectors.
const demoImages = 9000

// vectorsOf reads the vectors of a file, or those that mnist stands for.
func vectorsOf(ctx context.Context, name string, queries bool) (vectors []float32, dim int, err error) {
	if name != "mnist" {
		if err := files.Fits(name); err != nil {
			return nil, 0, err
		}
		type matrix struct {
			vectors []float32
			dim     int
		}
		m, err := files.Wait(ctx, func() (m matrix, err error) {
			m.vectors, m.dim, err = ann.LoadVectors(name)
			return m, err
		})
		return m.vectors, m.dim, err
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

func searchBuild(ctx context.Context, a *app.App, s searchFlags) error {
	if s.vectors == "" || s.out == "" {
		return app.Usagef("search build needs --vectors and --out")
	}
	for _, in := range []string{s.vectors, s.ids} {
		if in != "" && files.SameFile(in, s.out) {
			return app.Usagef("--out %s: it is a file that is read, too", s.out)
		}
	}
	if err := files.Index.MayReplace(s.out); err != nil {
		return err
	}
	o, err := s.options()
	if err != nil {
		return err
	}
	if _, err := ann.ParseMetric(s.metric); err != nil {
		return app.UsageError(err)
	}
	vectors, dim, err := vectorsOf(ctx, s.vectors, false)
	if err != nil {
		return err
	}
	ids, err := idsOf(ctx, s.ids, len(vectors)/dim)
	if err != nil {
		return err
	}
	if o.Session, err = a.Open(app.Exactly); err != nil {
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
	bar := a.Progress((len(ids) + each - 1) / each)
	for lo := 0; lo < len(ids) && err == nil; lo += each {
		hi := min(lo+each, len(ids))
		err = ix.Add(ctx, ids[lo:hi], vectors[lo*dim:hi*dim])
		bar.Step()
	}
	bar.End()
	if err != nil {
		return errors.Join(err, ix.Close())
	}
	took := time.Since(start)
	err = a.Save(ctx, s.out, func(w io.Writer) error {
		_, err := ix.WriteTo(w)
		return err
	})
	info := ix.Info()
	if err = errors.Join(err, ix.Close()); err != nil {
		return err
	}
	most := float32(0)
	for _, x := range vectors {
		if a := max(x, -x); a <= math.MaxFloat32 {
			most = max(most, a)
		}
	}
	// components that bytes of a fixed range do not reach, that bytes of any range make 0, and that are not finite
	cut, lost, odd := 0, 0, 0
	for _, x := range vectors {
		switch {
		case x-x != 0:
			odd++
		case o.Precision == ann.INT8 && (x > 1 || x < -128./127):
			cut++
		case o.Precision == ann.INT8Scaled && x != 0 && max(x, -x) < most/254:
			lost++
		}
	}
	if 2*lost < len(vectors) { // some are always near zero
		lost = 0
	}
	return a.Show(struct {
		ann.Info
		File    string     `json:"file"`
		BuildMs app.Number `json:"build_ms"`
		Cut     int        `json:"cut_components,omitempty"`
		Lost    int        `json:"lost_components,omitempty"`
		Odd     int        `json:"components_not_finite,omitempty"`
	}{info, s.out, app.Number(took.Seconds() * 1e3), cut, lost, odd}, func() {
		a.Printf("%s: %s of %s, built in %v\n", s.out, ui.Quantity(info.Len, "vector"),
			ui.Quantity(info.Dim, "component"), took.Round(time.Millisecond))
		if cut > 0 {
			a.Printf("%d of %d components are beyond -1 and 1, where int8 cuts them; --precision int8scaled "+
				"keeps them\n", cut, len(vectors))
		}
		if lost > 0 {
			a.Printf("%d of %d components are stored as 0, since the largest, %.3g, is more than 254 times as "+
				"large; --precision fp32 keeps them\n", lost, len(vectors), most)
		}
		if odd > 0 {
			becomes := "a vector with a NaN comes last in results"
			if o.Precision == ann.INT8 || o.Precision == ann.INT8Scaled {
				becomes = "bytes store them as 0"
			}
			a.Printf("%d of %d components are NaN or infinite: %s\n", odd, len(vectors), becomes)
		}
		if s.ivf.Lists > 1 && info.IVF.Lists < s.ivf.Lists {
			a.Printf("all vectors are in one list, as there are fewer than 16 for each of %d lists; each search "+
				"compares them all\n", s.ivf.Lists)
		}
	})
}

// options returns the options of a new index.
func (s searchFlags) options() (o ann.Options, err error) {
	if o.Precision, err = ann.ParsePrecision(s.precision); err != nil {
		return o, app.UsageError(err)
	}
	o.Device, o.HNSW, o.IVF = s.device, s.hnsw, s.ivf
	o.HNSW.Seed, o.IVF.Seed = s.seed, s.seed
	switch kind := strings.ToLower(s.kind); kind {
	case "gpu", "flat", "ivf", "pq", "brute", "bruteforce", "hnsw":
		if kind == "gpu" {
			o.Device = cmp.Or(o.Device, "auto")
		}
		lists := kind == "ivf" || kind == "pq"
		if kind != "gpu" && kind != "flat" && !lists && (o.Precision != ann.FP32 || o.Device != "") {
			return o, app.Usagef("--precision and --device are for --kind gpu, flat, ivf and pq")
		}
		if lists && strings.Contains(o.Device, ",") {
			return o, app.Usagef("--device %s: an index of kind %s is on one device", o.Device, kind)
		}
		if kind != "hnsw" && s.hnsw != (ann.HNSWOptions{}) {
			return o, app.Usagef("--m, --ef-construction, --ef-search and --codes are for --kind hnsw")
		}
		if kind != "pq" && (s.ivf.Codes != 0 || s.ivf.Refine != 0) {
			return o, app.Usagef("--code-bytes and --refine are for --kind pq")
		}
		if !lists && s.ivf != (ann.IVFOptions{}) {
			return o, app.Usagef("--lists and --probes are for --kind ivf and pq")
		}
		if kind != "hnsw" && !lists && s.seed != 0 {
			return o, app.Usagef("--seed is for --kind hnsw, ivf and pq")
		}
		if err := errors.Join(s.hnsw.Check(), s.ivf.Check()); err != nil {
			return o, app.UsageError(err)
		}
	default:
		return o, app.Usagef("--kind is brute, flat, gpu, hnsw, ivf or pq, not %q", s.kind)
	}
	return o, nil
}

// idsOf reads the ids of n vectors, or returns their numbers.
func idsOf(ctx context.Context, path string, n int) ([]int64, error) {
	if path == "" {
		ids := make([]int64, n)
		for i := range ids {
			ids[i] = int64(i)
		}
		return ids, nil
	}
	ids, dim, err := rowsOfIDs(ctx, path)
	if err == nil && (dim != 1 || len(ids) != n) {
		err = fmt.Errorf("%s: %d columns of %d ids in all, and %d vectors need one each", path, dim, len(ids), n)
	}
	return ids, err
}

// rowsOfIDs reads rows of so many ids: the integers of an .ivecs file, or an array of NumPy of one dimension,
// which is one column, or of two. Floats are ids where they are integers that have no neighbour of the same
// float.
func rowsOfIDs(ctx context.Context, path string) (ids []int64, dim int, err error) {
	if !files.IsArray(path) {
		places, dim, err := ann.LoadPlaces(path)
		for _, p := range places {
			ids = append(ids, int64(p))
		}
		return ids, dim, err
	}
	a, err := files.ReadArray(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	if dim = 1; len(a.Shape) == 2 {
		dim = a.Shape[1]
	}
	if len(a.Shape) == 0 || len(a.Shape) > 2 || dim < 1 {
		return nil, 0, fmt.Errorf("%s: an array of shape %s is no list of ids", path, ui.ShapeText(a.Shape))
	}
	ids = make([]int64, a.Len())
	size := a.Type.Size()
	for i := range ids {
		id := a.Data[i*size:]
		switch a.Type {
		case driver.I64:
			ids[i] = int64(binary.LittleEndian.Uint64(id))
		case driver.I32:
			ids[i] = int64(int32(binary.LittleEndian.Uint32(id)))
		case driver.U32:
			ids[i] = int64(binary.LittleEndian.Uint32(id))
		case driver.F32:
			x := math.Float32frombits(binary.LittleEndian.Uint32(id))
			if ids[i] = int64(x); x != float32(ids[i]) || x >= 1<<24 {
				return nil, 0, fmt.Errorf("%s: %v is not an integer below 2^24; larger ids need integers: i64, i32 or u32", path, x)
			}
		default:
			return nil, 0, fmt.Errorf("%s: ids of type %v; they are i64, i32 or u32: %w", path, a.Type, driver.ErrUnsupported)
		}
	}
	return ids, dim, nil
}
