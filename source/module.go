package source

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/source/internal/spirv"
	"github.com/concord-compute/concord/source/internal/token"
)

// Module is a program as a SPIR-V module for Vulkan 1.3. Its fields are the caller's:
//
//	Words     []byte         // the module
//	Constants []byte         // what it reads: the launch puts it into memory, at a multiple of 128 bytes
//	Kernels   []ModuleKernel // its entry points, which EntryPrefix describes
type Module = spirv.Module

// ModuleKernel describes an entry point of a Module. Its fields are
//
//	Name       string // without EntryPrefix
//	LocalBytes int    // bytes of local memory that it declares
//	ReqdLocal  [3]int // the required size of groups, or zeros
//	ArgBytes   int    // bytes of its arguments
//	InMemory   bool   // they have to be in memory
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
