package source

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/source/internal/spirv"
	"github.com/concord-compute/concord/source/internal/token"
)

// Module is a program as a SPIR-V module for Vulkan 1.3, whose entry points EntryPrefix describes: its Words, the
// Constants that it reads, which the launch puts into memory at a multiple of 128 bytes, and its Kernels. It is the caller's.
type Module = spirv.Module

// ModuleKernel describes an entry point of a Module: its Name without EntryPrefix, the bytes of local memory that it
// declares (LocalBytes), its required group size (ReqdLocal) or zeros, the size of its arguments (ArgBytes), and whether
// they have to be in memory (InMemory).
type ModuleKernel = spirv.Kernel

// Module returns the program as SPIR-V. Errors, the context and the running time are as with RenderContext.
func (u *Unit) Module(ctx context.Context) (m *Module, err error) {
	defer token.Settle(&err)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := u.portable(SPIRV); err != nil {
		return nil, err
	}
	m, err = spirv.Emit(token.NewMeter(ctx), u.tree)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return m, nil
}
