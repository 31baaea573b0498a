//go:build cgo && unix

package cgo

// Compiling: for a device, and for architectures of which this machine has no device.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// schema is part of the cache key. It has to be changed with any change of this package after which
// the same unit compiles to different bytes.
const schema = "table 1"

// compiler returns the targets that the compiler of the libraries knows.
func (b *backend) compiler(l library) ([]string, error) {
	if b.v.Compiler != nil {
		return b.v.Compiler.Targets, nil
	}
	if !l.compiler {
		return nil, b.error("compile", driver.ErrNoCompiler, b.noCompiler(l))
	}
	list, f := l.t.targets(l.c)
	if f != nil {
		return nil, f.error(b.v.Name, "", "list targets")
	}
	return strings.Fields(list), nil
}

// Targets implements driver.CrossCompiler.
func (b *backend) Targets(ctx context.Context, cfg *driver.Config) ([]string, error) {
	return blocking.Call(ctx, func() ([]string, error) {
		l, err := b.crossLibraries(cfg)
		if err != nil {
			return nil, err
		}
		return b.compiler(l)
	}, func([]string) {})
}

// crossLibraries opens the libraries for compiling without a device. If there are none, the error
// is that there is no compiler.
func (b *backend) crossLibraries(cfg *driver.Config) (library, error) {
	if _, ok := b.table(); !ok {
		return library{}, b.error("compile", driver.ErrUnsupported, b.v.Missing)
	}
	if b.v.Compiler != nil {
		return library{}, nil
	}
	l, err := b.libraries(cmp.Or(cfg, &driver.Config{}))
	if err != nil {
		l.compiler = false
	}
	return l, nil
}

// TargetFeatures implements driver.CrossCompiler.
func (b *backend) TargetFeatures(target string) source.Features { return b.v.Features(target) }

// CompileFor implements driver.CrossCompiler.
func (b *backend) CompileFor(ctx context.Context, cfg *driver.Config, target string, unit *source.Unit,
	options []string) (driver.Compiled, error) {
	return blocking.Call(ctx, func() (driver.Compiled, error) {
		l, err := b.crossLibraries(cfg)
		if err != nil {
			return driver.Compiled{}, err
		}
		known, err := b.compiler(l)
		if err != nil {
			return driver.Compiled{}, err
		}
		if !knows(known, target) {
			return driver.Compiled{}, b.error("compile for "+target, driver.ErrInvalidArgument,
				"the installed compiler knows "+strings.Join(known, ", "))
		}
		c, err := b.compile(ctx, l, target, unit, options)
		if err != nil {
			return driver.Compiled{}, err
		}
		out := driver.Compiled{Binary: driver.Binary{Code: c.Code, Log: c.Log}}
		out.Kernels, err = b.report(c)
		return out, err
	}, func(driver.Compiled) {})
}

// knows reports whether a list contains a target, of which features after a colon are ignored.
func knows(known []string, target string) bool {
	base, _, _ := strings.Cut(target, ":")
	return base != "" && (slices.Contains(known, target) || slices.Contains(known, base))
}

// report returns the properties of a unit's kernels, in the order of the unit.
func (b *backend) report(c *Compilation) ([]driver.KernelInfo, error) {
	var told []driver.KernelInfo
	if b.v.Report != nil {
		var err error
		if told, err = b.v.Report(c); err != nil {
			return nil, err
		}
	}
	byName := make(map[string]driver.KernelInfo, len(told))
	for _, t := range told {
		byName[strings.TrimPrefix(t.Name, source.EntryPrefix)] = t
	}
	var list []driver.KernelInfo
	for _, k := range c.Unit.Kernels() {
		info, ok := byName[k.Name]
		if !ok && len(told) > 0 { // a native text
			return nil, &driver.BuildError{Source: c.Unit.NameFor(b.v.Target), Target: c.Target,
				Err: fmt.Errorf("kernel %s is not in the compiled program: is it extern \"C\" __global__?: %w", k.Name,
					driver.ErrNoKernel)}
		}
		info.Name, info.Implementation = k.Name, b.v.Target.String()
		list = append(list, info)
	}
	return list, nil
}

// compile renders and builds a unit. A context that is done ends the rendering.
func (b *backend) compile(ctx context.Context, l library, target string, unit *source.Unit,
	options []string) (*Compilation, error) {
	if b.v.Options != nil {
		var err error
		if options, err = b.v.Options(options); err != nil {
			return nil, &driver.OpError{Backend: b.v.Name, Op: "compile " + unit.Name(), Err: err}
		}
	}
	refused := func(err error) error {
		if ctx.Err() != nil {
			return &driver.OpError{Backend: b.v.Name, Op: "compile " + unit.Name(), Err: context.Cause(ctx)}
		}
		return &driver.BuildError{Source: unit.Name(), Target: target, Log: err.Error(), Err: err}
	}
	if b.v.Compiler != nil {
		code, log, err := b.v.Compiler.Build(ctx, unit, target, options)
		if err != nil {
			return nil, refused(err)
		}
		return &Compilation{Target: target, Unit: unit, Options: options, Code: code, Log: log}, nil
	}
	text, err := unit.RenderContext(ctx, b.v.Target)
	if err != nil {
		return nil, refused(err)
	}
	build := func(options []string) ([]byte, string, error) {
		code, log, f := l.t.compile(l.c, unit.NameFor(b.v.Target), text, options)
		return code, log, b.built(l, unit, target, "compile "+unit.Name(), log, f)
	}
	merge := b.v.Merge
	if merge == nil {
		merge = func(flags, options []string) []string { return slices.Concat(flags, options) }
	}
	c := &Compilation{Target: target, Unit: unit, Options: merge(b.v.Flags(target), options), Compile: build,
		Assemble: func(text []byte, options []string) ([]byte, string, error) {
			code, log, f := l.t.assemble(l.c, text, options)
			return code, log, b.built(l, unit, target, "assemble "+unit.Name(), log, f)
		}}
	c.Code, c.Log, err = build(c.Options)
	if err == nil && len(c.Code) == 0 {
		err = &driver.BuildError{Source: unit.Name(), Target: target, Log: c.Log,
			Err: fmt.Errorf("the compiler returned nothing: %w", errFailed)}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// built returns the error of a build. The compiler can also fail for reasons of its own: then the error says which
// compiler it was, and has the log nevertheless.
func (b *backend) built(l library, unit *source.Unit, target, op, log string, f *failure) error {
	if f == nil {
		return nil
	}
	err := &driver.BuildError{Source: unit.Name(), Target: target, Log: log}
	switch f.status {
	case statusCompile:
		if log == "" {
			err.Log = f.text
		}
		return err
	case statusFailed:
		f.text += b.toolchain(l)
		err.Err = f.as(b.v.Name, "", op, errCompiler)
	default:
		err.Err = f.error(b.v.Name, "", op)
		if log == "" {
			return err.Err
		}
	}
	return err
}

// toolchain names the libraries that the compiler consists of, and a part that is missing.
func (b *backend) toolchain(l library) string {
	text, list := "", l.t.libraries(l.c, nil)
	for _, name := range b.v.Compilers {
		if i := slices.IndexFunc(list, func(l driver.Library) bool { return l.Name == name }); i >= 0 {
			text += strings.TrimRight(", "+name+" "+list[i].Version, " ") + " in " + list[i].Path
		} else {
			text += ", " + name + " was not found"
		}
	}
	return text
}

// target returns the target to compile for on the device.
func (d *device) target() (string, error) {
	known, err := d.b.compiler(d.lib)
	if err != nil {
		return "", err
	}
	if d.b.v.CompileArch == nil {
		if !knows(known, d.info.Arch) {
			return "", d.errorf("compile", driver.ErrUnsupported, "the installed compiler does not know %s, only %s",
				d.info.Arch, strings.Join(known, ", "))
		}
		return d.info.Arch, nil
	}
	target, err := d.b.v.CompileArch(d.info.Arch, known)
	if err != nil {
		return "", &driver.OpError{Backend: d.b.v.Name, Device: d.info.ID, Op: "compile", Detail: err.Error(),
			Err: driver.ErrUnsupported}
	}
	return target, nil
}

// Identity implements driver.Compiler.
func (d *device) Identity(context.Context) ([]string, error) {
	target, err := d.target()
	if err != nil {
		return nil, err
	}
	v, f := d.t.versions(d.lib.c)
	if f != nil {
		return nil, d.failed("compile", f)
	}
	list := []string{schema, d.b.v.Target.String(), d.info.Arch, target,
		fmt.Sprintf("driver %d", v.driver), fmt.Sprintf("runtime %d", v.runtime),
		fmt.Sprintf("compiler %d.%d", v.compiler_major, v.compiler_minor)}
	if c := d.b.v.Compiler; c != nil {
		return append(list, c.Version), nil
	}
	return append(list, d.b.v.Flags(target)...), nil
}

// Compile implements driver.Compiler. Compilers cannot be stopped: when ctx is done the build goes
// on in its goroutine and its result is dropped. The build needs only the libraries, which are
// never closed, so that the device may be closed meanwhile.
func (d *device) Compile(ctx context.Context, unit *source.Unit, options []string) (driver.Binary, error) {
	if err := d.enter("compile " + unit.Name()); err != nil {
		return driver.Binary{}, err
	}
	d.leave()
	options = slices.Clone(options)
	return blocking.Call(ctx, func() (driver.Binary, error) {
		target, err := d.target()
		if err != nil {
			return driver.Binary{}, err
		}
		c, err := d.b.compile(ctx, d.lib, target, unit, options)
		if err != nil {
			return driver.Binary{}, err
		}
		return driver.Binary{Code: programs.Seal(c.Code), Log: c.Log}, nil
	}, func(driver.Binary) {})
}
