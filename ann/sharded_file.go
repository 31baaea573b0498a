package ann

// The files of an index in shards: one for each shard, and one that has the rest and makes the others count.

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
)

// mainFile is the file of a directory that has what is of all shards; the shards' files end with shardFile.
const mainFile, shardFile = "shards.ann", ".shard"

const mostShards = 1 << 16

// savedShards is the configuration of an index in shards, in JSON.
type savedShards struct {
	Kind      string    `json:"kind"`
	Metric    string    `json:"metric"`
	Dim       int       `json:"dim"`
	Rows      int       `json:"rows"`
	Precision string    `json:"precision"`
	Scale     float64   `json:"scale,omitempty"` // of int8scaled, once it is fixed
	MaxRows   int       `json:"max_rows,omitempty"`
	Shards    int       `json:"shards"`
	Weights   []float64 `json:"weights,omitempty"`
	Save      uint64    `json:"save"` // a random number, which the names of the shards' files of one save have

	order  []int64
	metric Metric
	code   coding
}

// shardPath returns the file of a shard.
func shardPath(dir string, number int, save uint64) string {
	return filepath.Join(dir, shardName(strconv.Itoa(number), save))
}

func shardName(number string, save uint64) string {
	return fmt.Sprintf("%s.%016x%s", number, save, shardFile)
}

// Save writes the index to a directory, which it makes if there is none, and which has nothing else: a file for each
// shard, and shards.ann, which is replaced at the end. So a reader finds the old index or the new one, also if a
// process is killed or a context ends. All processes of a job call it with a directory that all of them see: one that
// does not find the files of all shards there returns [fs.ErrNotExist] in all. One save of a directory runs at a time.
// A shards.ann that is there and cannot be read, or is none, is an error and stays. Save removes the files of earlier
// ones, which an index that is open no longer has to find; a process that opens the directory meanwhile may have to do
// so again.
func (s *Sharded) Save(ctx context.Context, dir string) error {
	unlock, err := s.reading(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.saving.Lock()
	defer s.saving.Unlock()
	err = s.agree(ctx, s.fingerprint("save"), func(context.Context) error {
		if _, err := readMain(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.MkdirAll(dir, 0o777)
	})
	first, save := s.group.Members()[0].Rank() == 0, rand.Uint64()
	if err == nil && s.job { // member 0 writes the file that counts
		var all []byte
		if all, err = s.gather(ctx, binary.LittleEndian.AppendUint64(nil, save)); err == nil {
			save = binary.LittleEndian.Uint64(all)
		}
	}
	if err != nil {
		return err
	}
	err = s.agree(ctx, s.fingerprint("shards"), func(ctx context.Context) error {
		return s.each(ctx, func(ctx context.Context, _ int, p *part) error {
			return Save(ctx, shardPath(dir, p.number, save), p.contents)
		})
	})
	if err == nil && s.job {
		err = s.agree(ctx, s.fingerprint("seen"), func(context.Context) error {
			for i := range s.ends { // they have a new name, so all processes see one directory
				if _, err := os.Stat(shardPath(dir, i, save)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		err = s.agree(context.WithoutCancel(ctx), s.fingerprint("main"), func(context.Context) error {
			if !first {
				return nil
			}
			return file.Replace(filepath.Join(dir, mainFile), func(w io.Writer) error { return s.writeMain(w, save) })
		})
	}
	if first { // no other process decides which files count
		clean(dir)
	}
	return err
}

// clean removes the files of shards that do not belong to what shards.ann says.
func clean(dir string) {
	m, err := readMain(dir)
	if err != nil {
		return
	}
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		name := e.Name()
		number, _, _ := strings.Cut(name, ".")
		if strings.HasSuffix(name, shardFile) && name != shardName(number, m.Save) {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
}

// writeMain writes what is of all shards.
func (s *Sharded) writeMain(to io.Writer, save uint64) error {
	c := savedShards{Kind: s.kind, Metric: s.metric.String(), Dim: s.dim, Rows: len(s.order), Precision: s.code.String(),
		MaxRows: s.maxRows, Shards: len(s.ends), Weights: s.weights, Save: save}
	if s.scaled && s.code.Precision == INT8Scaled {
		c.Scale = s.code.scale
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	w, err := newWriter(to, version)
	if err == nil {
		err = w.add(data("shards", text))
	}
	if err == nil {
		err = w.add(data("order", s.order))
	}
	if err == nil {
		err = w.end()
	}
	return err
}

// readMain reads what writeMain wrote.
func readMain(dir string) (savedShards, error) {
	path := filepath.Join(dir, mainFile)
	c, m, err := file.Parse(path, func(all []byte) (c savedShards, err error) {
		list, err := readSections(all)
		if err != nil {
			return c, err
		}
		if len(list) != 2 || list[0].name != "shards" || list[1].name != "order" {
			return c, fmt.Errorf("ann: the file is not that of an index in shards: %w", runtime.ErrFormat)
		}
		for _, x := range list {
			if err := x.verify(context.Background()); err != nil {
				return c, err
			}
		}
		if err := json.Unmarshal(list[0].data, &c); err != nil {
			return c, corruptFile("the configuration: %v", err)
		}
		if c.metric, err = ParseMetric(c.Metric); err != nil {
			return c, err
		}
		p, err := ParsePrecision(c.Precision)
		if err != nil {
			return c, err
		}
		if c.code = p.scaleOf(nil); c.Scale != 0 && p == INT8Scaled {
			c.code.scale = c.Scale
		}
		c.order = append(c.order, elements[int64](list[1].data)...)
		if c.Dim < 1 || c.Shards < 1 || c.Shards > mostShards || c.Rows != len(c.order) ||
			c.Weights != nil && len(c.Weights) != c.Shards {
			return c, corruptFile("%d of %d rows of %d components in %d shards", len(c.order), c.Rows, c.Dim, c.Shards)
		}
		return c, nil
	})
	if err == nil {
		m.Close()
	}
	return c, err
}

// OpenSharded opens the index that [Sharded.Save] wrote to a directory, on the devices of a group, which may have
// another number of members than the one that saved it: shard i belongs to member i modulo their number. Of each shard
// the checks and errors are those of [Open]; what is of all shards is checked at once. If one shard cannot be opened,
// none is. The ids of each shard are compared with those of the whole. All processes of a job call it with a directory
// that has the same files for all.
func OpenSharded(ctx context.Context, g *cluster.Group, dir string) (*Sharded, error) {
	s, err := newSharded(ctx, g)
	if err != nil {
		return nil, err
	}
	m, failed := readMain(dir)
	call := fingerprint(fmt.Sprint("open", m.Save, m.Rows, m.Shards), bytesOf(m.order))
	if failed != nil { // which is what all return, and not that the calls differ
		call = 0
	}
	return s.made(ctx, call, func(ctx context.Context) error {
		if failed != nil {
			return failed
		}
		s.kind, s.dim, s.metric, s.maxRows = m.Kind, m.Dim, m.metric, m.MaxRows
		s.order, s.code, s.scaled = m.order, m.code, m.Scale != 0
		err := s.divide(ctx, m.Shards, m.Weights, func(dev *runtime.Device, number int) (contents, error) {
			return openShard(ctx, dev, shardPath(dir, number, m.Save))
		})
		if err != nil {
			return err
		}
		own := make([][]int64, m.Shards)
		for _, id := range m.order {
			i := s.shardOf(id)
			own[i] = append(own[i], id)
		}
		return s.each(ctx, func(ctx context.Context, _ int, p *part) error {
			i, ids := p.contents.Info(), own[p.number]
			if i.Kind != m.Kind || i.Metric != m.Metric || i.Dim != m.Dim || i.Precision != m.Precision ||
				i.Len != len(ids) || m.Scale != 0 && p.base().e.code != m.code {
				return corruptFile("shard %d is %v, and has %d of all vectors", p.number, i, len(ids))
			}
			return p.base().has(ctx, ids)
		})
	})
}

// has checks that the ids of the index are these, which it sorts, and that they are ids. It is called before the index
// is used otherwise.
func (s *storage) has(ctx context.Context, ids []int64) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	slices.Sort(ids)
	rows := s.table.order
	if rows == nil {
		rows = s.byID()
	}
	for i, id := range ids {
		if id < 0 || i > 0 && id == ids[i-1] || i >= len(rows) || s.ids[rows[i]] != id {
			return corruptFile("the id %d, number %d of a shard, is not one of its %d", id, i, len(rows))
		}
	}
	return nil
}

// openShard opens a file on a device.
func openShard(ctx context.Context, dev *runtime.Device, path string) (contents, error) {
	im, m, err := file.Parse(path, readImage)
	if err != nil {
		return nil, err
	}
	c, err := im.made(ctx, Options{}, func() { m.Close() }, func(o Options) (contents, error) {
		return o.on([]*runtime.Device{dev}, im.Kind, im.Dim, im.metric)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
