package validate

// Files of launches whose results were wrong: an archive with launch.json, the program and the memory before the
// launch.

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const (
	fileFormat  = "concord launch 1"
	mostFile    = 4 << 30  // bytes of a file that is read
	mostText    = 64 << 20 // of its description, and of each text
	launchName  = "launch.json"
	programName = "program.cl"
	includes    = "include"
)

// document is launch.json.
type document struct {
	Format         string          `json:"format"`
	Found          string          `json:"found"` // when, and what
	Device         string          `json:"device"`
	Implementation string          `json:"implementation"`
	Native         bool            `json:"native,omitempty"`
	Family         string          `json:"family,omitempty"`
	Name           string          `json:"name"` // of the text
	Kernel         string          `json:"kernel"`
	Defines        []source.Define `json:"defines,omitempty"`
	Dim            int             `json:"dim"`
	Items          [3]int          `json:"items"`
	Group          [3]int          `json:"group"`
	Args           []documentArg   `json:"args"`
	Regions        []int           `json:"regions"` // the bytes of each
	Seed           uint64          `json:"seed"`
	Work           float64         `json:"work"` // operations of a result that is judged as a whole
	Reference      string          `json:"reference"`
}

// documentArg is one argument.
type documentArg struct {
	Kind    driver.ArgKind `json:"kind"` // 0 a value, 1 a buffer, 2 local memory
	Value   []byte         `json:"value,omitempty"`
	Local   int            `json:"local,omitempty"`
	Type    string         `json:"type,omitempty"`
	Written bool           `json:"written,omitempty"`
	Region  int            `json:"region,omitempty"`
	Offset  int            `json:"offset,omitempty"`
	Bytes   int            `json:"bytes,omitempty"`
}

// difference describes a launch whose result is wrong.
func difference(s *driver.Sample, seed uint64, r Result) Difference {
	d := Difference{Device: s.Device, Kernel: s.Kernel, Implementation: s.Implementation, Grid: grid(s), Seed: seed,
		Result: r}
	if family := s.Unit.Family(); family != "" && family != s.Kernel {
		d.Kernel = family + "/" + s.Kernel
	}
	for _, def := range s.Unit.Defines() {
		d.Defines = append(d.Defines, def.Name+"="+def.Value)
	}
	decl, _ := s.Unit.Kernel(s.Kernel)
	for i := range s.Args {
		d.Args = append(d.Args, argText(&s.Args[i], decl.Params[i]))
	}
	return d
}

// argText returns an argument as text.
func argText(a *driver.SampleArg, p source.Param) string {
	switch {
	case a.Kind == driver.ArgLocal:
		return fmt.Sprintf("%d bytes of local memory", a.Local)
	case a.Kind == driver.ArgMemory && a.Bytes == 0:
		return "an empty buffer"
	case a.Kind == driver.ArgMemory:
		return fmt.Sprintf("%v[%d]", a.Type, a.Bytes/a.Type.Size())
	case p.Width != 1 || p.Kind == source.Struct:
		return fmt.Sprintf("%x", a.Value)
	}
	c := kernels.Call{Params: []source.Param{p}, Args: []kernels.Argument{{Bytes: a.Value}}}
	return fmt.Sprint(c.Float(0))
}

// keep writes the file of a difference, if there is room for one.
func (v *Validator) keep(s *driver.Sample, d *Difference) (name string, err error) {
	if v.opt.Dir == "" {
		return "", nil
	}
	v.mu.Lock()
	full := v.files >= v.opt.Files
	if !full {
		v.files++
	}
	n := v.files
	v.mu.Unlock()
	if full {
		return "", fmt.Errorf("there are %d files already", v.opt.Files)
	}
	now := time.Now().UTC()
	name = fmt.Sprintf("%s-%s-%d-%d.zip", s.Kernel, now.Format("20060102T150405.000"), os.Getpid(), n)
	name = filepath.Join(v.opt.Dir, name)
	err = os.MkdirAll(v.opt.Dir, 0o755)
	if err == nil {
		err = file.Replace(name, func(w io.Writer) error { return write(w, s, d, v.most, now) })
	}
	if err != nil {
		v.mu.Lock()
		v.files-- // another one may fit
		v.mu.Unlock()
		return "", err
	}
	return name, nil
}

// write writes a launch.
func write(w io.Writer, s *driver.Sample, d *Difference, work float64, now time.Time) error {
	doc := document{Format: fileFormat, Found: now.Format(time.RFC3339) + ": " + d.String(), Device: s.Device,
		Implementation: s.Implementation, Native: s.Native, Family: s.Unit.Family(), Name: s.Unit.Name(), Kernel: s.Kernel,
		Defines: s.Unit.Defines(), Dim: s.Dim, Items: s.Global, Group: s.Local, Seed: d.Seed,
		Work:      min(work, math.MaxFloat64), // JSON has no infinity
		Reference: d.Reference}
	for _, a := range s.Args {
		doc.Args = append(doc.Args, documentArg{a.Kind, a.Value, a.Local, a.Type.String(), a.Written, a.Region, a.Offset,
			a.Bytes})
		if last := &doc.Args[len(doc.Args)-1]; a.Type == driver.NoType {
			last.Type = ""
		}
	}
	for _, r := range s.Regions {
		doc.Regions = append(doc.Regions, r.Bytes)
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	put := func(name string, data []byte) {
		var out io.Writer
		if err == nil {
			out, err = z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Modified: now})
		}
		if err == nil {
			_, err = out.Write(data)
		}
	}
	put(launchName, text)
	put(programName, []byte(s.Unit.Text()))
	for _, f := range s.Unit.Includes() {
		put(includes+"/"+f.Name, []byte(f.Text))
	}
	for i, r := range s.Regions {
		put(regionName(i), r.Before)
	}
	return errors.Join(err, z.Close())
}

func regionName(i int) string { return fmt.Sprintf("memory%d.bin", i) }

// Repeat launches the kernel of a file of a [Difference] again, with the same inputs, on a device, and judges the
// result as it was judged then: the same rows, by the same reference. On the device of the file it runs the
// implementation that ran then. What the Difference says of device and implementation is of the repetition, and Found
// of the launch of the file. A file that is damaged is an error that matches driver.ErrCorrupt. Repeat blocks
// until the device has computed.
func Repeat(ctx context.Context, dev *runtime.Device, name string) (Difference, error) {
	var none Difference
	if ctx == nil || dev == nil {
		return none, fmt.Errorf("validate: context or device is nil: %w", runtime.ErrInvalidArgument)
	}
	doc, s, err := read(ctx, dev, name)
	if err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	impl := runtime.Fastest
	if doc.Device == dev.String() {
		if impl = runtime.Portable; doc.Native {
			impl = runtime.Native
		}
	}
	after, form, err := launch(ctx, dev, impl, s)
	if err != nil {
		return none, err
	}
	for i := range s.Regions {
		s.Regions[i].After = after[i]
	}
	s.Device, s.Implementation = dev.String(), form
	r, err := reference(ctx, s, doc.Seed, doc.Work)
	if errors.Is(err, errForeign) {
		other := doc.Reference
		if other == dev.String() {
			other = ""
		}
		devices := newOthers(dev.Session())
		r, err = devices.judge(ctx, other, s)
		err = errors.Join(err, devices.close())
	}
	if err != nil {
		return none, err
	}
	d := difference(s, doc.Seed, r)
	d.File, d.Found = name, fmt.Sprintf("%s (%s)", doc.Device, doc.Implementation)
	return d, nil
}

// Device returns the name of the device on which the launch of a file had a wrong result.
func Device(name string) (string, error) {
	z, err := open(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	defer z.Close()
	doc, err := describe(&z.Reader)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return doc.Device, nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("not a file of a launch: "+format+": %w", append(args, driver.ErrCorrupt)...)
}

func open(name string) (*zip.ReadCloser, error) {
	z, err := zip.OpenReader(name)
	switch {
	case errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm):
		return nil, corrupt("%v", err)
	case err != nil:
		return nil, file.WithoutPath(err)
	}
	return z, nil
}

// describe reads launch.json and checks it.
func describe(z *zip.Reader) (doc document, err error) {
	text, err := contents(z, launchName, mostText)
	if err != nil {
		return doc, err
	}
	in := json.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&doc); err != nil {
		return doc, corrupt("%s: %v", launchName, err)
	}
	if doc.Format != fileFormat {
		return doc, corrupt("its format is %q, not %q", doc.Format, fileFormat)
	}
	all := int64(0)
	for _, n := range doc.Regions {
		if all += int64(n); n < 0 || all > mostFile {
			return doc, corrupt("regions of %v bytes", doc.Regions)
		}
	}
	if doc.Dim < 1 || doc.Dim > 3 {
		return doc, corrupt("a grid of %d dimensions", doc.Dim)
	}
	for i := range doc.Args {
		a := &doc.Args[i]
		t := driver.NoType
		if a.Type != "" {
			if t, err = driver.ParseType(a.Type); err != nil {
				return doc, corrupt("argument %d: %v", i, err)
			}
		}
		memory := a.Kind == driver.ArgMemory && a.Bytes > 0
		if a.Kind > driver.ArgLocal || a.Bytes < 0 || a.Local < 0 || memory && (t == driver.NoType || t.Stored() != t ||
			a.Region < 0 || a.Region >= len(doc.Regions) || a.Offset < 0 || a.Bytes > doc.Regions[a.Region]-a.Offset) {
			return doc, corrupt("argument %d has no place in its memory", i)
		}
	}
	return doc, nil
}

// contents reads a file of the archive.
func contents(z *zip.Reader, name string, most int64) ([]byte, error) {
	f, err := z.Open(name)
	if err != nil {
		return nil, corrupt("it has no %s", name)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, corrupt("%s: %v", name, err)
	}
	if int64(len(data)) > most {
		return nil, corrupt("%s has more than %d bytes", name, most)
	}
	return data, nil
}

// read reads a launch, with its program for a device.
func read(ctx context.Context, dev *runtime.Device, name string) (doc document, s *driver.Sample, err error) {
	z, err := open(name)
	if err != nil {
		return doc, nil, err
	}
	defer z.Close()
	if doc, err = describe(&z.Reader); err != nil {
		return doc, nil, err
	}
	s = &driver.Sample{Device: doc.Device, Kernel: doc.Kernel, Implementation: doc.Implementation, Native: doc.Native,
		Dim: doc.Dim, Global: doc.Items, Local: doc.Group}
	if s.Unit, err = program(ctx, dev, &z.Reader, &doc); err != nil {
		return doc, nil, err
	}
	decl, ok := s.Unit.Kernel(doc.Kernel)
	if !ok || len(decl.Params) != len(doc.Args) {
		return doc, nil, corrupt("its program has no kernel %s with %d parameters", doc.Kernel, len(doc.Args))
	}
	for i, a := range doc.Args {
		t, _ := driver.ParseType(cmp.Or(a.Type, "u8")) // describe has checked it
		p := &decl.Params[i]
		memory, local := p.Pointer && p.Space != source.Local, p.Pointer && p.Space == source.Local
		if memory != (a.Kind == driver.ArgMemory) || local != (a.Kind == driver.ArgLocal) ||
			a.Kind == driver.ArgValue && len(a.Value) != p.Size {
			return doc, nil, corrupt("argument %d is not one for %s %s", i, p.Decl, p.Name)
		}
		s.Args = append(s.Args, driver.SampleArg{Kind: a.Kind, Value: a.Value, Local: a.Local, Type: t,
			Written: memory && !p.Const, Region: a.Region, Offset: a.Offset, Bytes: a.Bytes})
	}
	for i, n := range doc.Regions {
		b, err := contents(&z.Reader, regionName(i), int64(n))
		if err == nil && len(b) != n {
			err = corrupt("%s has %d bytes of %d", regionName(i), len(b), n)
		}
		if err != nil {
			return doc, nil, err
		}
		s.Regions = append(s.Regions, driver.SampleRegion{Bytes: n, Before: b})
	}
	return doc, s, nil
}

// program returns the program of a launch: that of the catalog, if it has it, and else the text of the file.
func program(ctx context.Context, dev *runtime.Device, z *zip.Reader, doc *document) (*source.Unit, error) {
	if _, ok := kernels.Find(doc.Family); ok {
		return kernels.Unit(doc.Family, dev.Features(), doc.Defines...)
	}
	text, err := contents(z, programName, mostText)
	if err != nil {
		return nil, err
	}
	opt := source.Options{Name: doc.Name, Family: doc.Family, Defines: doc.Defines, Features: dev.Features()}
	if dir, err := fs.Sub(z, includes); err == nil && strings.Contains(string(text), "include") {
		opt.Includes = []fs.FS{dir}
	}
	return source.ParseContext(ctx, string(text), opt)
}
