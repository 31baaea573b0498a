//go:build cgo && opencl && (linux || darwin)

package opencl

// OpenCL's error codes: their names, and the sentinels of runtime/driver for them.

import (
	"fmt"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/internal/cgo"
	"github.com/concord-compute/concord/runtime/driver"
)

// Codes that the binding does not have, or that csrc/opencl defines.
const (
	codeHostMemory  cl.ErrorCode = -6    // CL_OUT_OF_HOST_MEMORY
	codeNoPlatform  cl.ErrorCode = -1001 // CL_PLATFORM_NOT_FOUND_KHR: also "no loader", from our shim
	codeNVIDIAFault cl.ErrorCode = -9999 // undocumented: a kernel accessed an invalid address
)

// codes has a name and a sentinel for every code. A nil sentinel means that it depends on the
// operation.
var codes = map[cl.ErrorCode]struct {
	name string
	is   error
}{
	-1:  {"CL_DEVICE_NOT_FOUND", driver.ErrNoDevice},
	-2:  {"CL_DEVICE_NOT_AVAILABLE", driver.ErrNoDevice},
	-3:  {"CL_COMPILER_NOT_AVAILABLE", driver.ErrNoCompiler},
	-4:  {"CL_MEM_OBJECT_ALLOCATION_FAILURE", driver.ErrOutOfMemory},
	-5:  {"CL_OUT_OF_RESOURCES", nil},
	-6:  {"CL_OUT_OF_HOST_MEMORY", driver.ErrOutOfMemory},
	-7:  {"CL_PROFILING_INFO_NOT_AVAILABLE", driver.ErrTimingDisabled},
	-8:  {"CL_MEM_COPY_OVERLAP", driver.ErrInvalidArgument},
	-9:  {"CL_IMAGE_FORMAT_MISMATCH", driver.ErrInvalidArgument},
	-10: {"CL_IMAGE_FORMAT_NOT_SUPPORTED", driver.ErrUnsupported},
	-11: {"CL_BUILD_PROGRAM_FAILURE", driver.ErrCompile},
	-12: {"CL_MAP_FAILURE", nil},
	-13: {"CL_MISALIGNED_SUB_BUFFER_OFFSET", driver.ErrInvalidArgument},
	-14: {"CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", nil},
	-15: {"CL_COMPILE_PROGRAM_FAILURE", driver.ErrCompile},
	-16: {"CL_LINKER_NOT_AVAILABLE", driver.ErrUnsupported},
	-17: {"CL_LINK_PROGRAM_FAILURE", driver.ErrCompile},
	-18: {"CL_DEVICE_PARTITION_FAILED", driver.ErrUnsupported},
	-19: {"CL_KERNEL_ARG_INFO_NOT_AVAILABLE", driver.ErrUnsupported},
	-30: {"CL_INVALID_VALUE", driver.ErrInvalidArgument},
	-31: {"CL_INVALID_DEVICE_TYPE", driver.ErrInvalidArgument},
	-32: {"CL_INVALID_PLATFORM", driver.ErrInvalidArgument},
	-33: {"CL_INVALID_DEVICE", driver.ErrInvalidArgument},
	-34: {"CL_INVALID_CONTEXT", driver.ErrInvalidArgument},
	-35: {"CL_INVALID_QUEUE_PROPERTIES", driver.ErrUnsupported},
	-36: {"CL_INVALID_COMMAND_QUEUE", driver.ErrInvalidArgument},
	-37: {"CL_INVALID_HOST_PTR", driver.ErrInvalidArgument},
	-38: {"CL_INVALID_MEM_OBJECT", driver.ErrInvalidArgument},
	-39: {"CL_INVALID_IMAGE_FORMAT_DESCRIPTOR", driver.ErrInvalidArgument},
	-40: {"CL_INVALID_IMAGE_SIZE", driver.ErrInvalidArgument},
	-41: {"CL_INVALID_SAMPLER", driver.ErrInvalidArgument},
	-42: {"CL_INVALID_BINARY", driver.ErrCorrupt},
	-43: {"CL_INVALID_BUILD_OPTIONS", driver.ErrInvalidArgument},
	-44: {"CL_INVALID_PROGRAM", driver.ErrInvalidArgument},
	-45: {"CL_INVALID_PROGRAM_EXECUTABLE", driver.ErrCompile},
	-46: {"CL_INVALID_KERNEL_NAME", driver.ErrCompile},
	-47: {"CL_INVALID_KERNEL_DEFINITION", driver.ErrCompile},
	-48: {"CL_INVALID_KERNEL", driver.ErrInvalidArgument},
	-49: {"CL_INVALID_ARG_INDEX", driver.ErrInvalidArgument},
	-50: {"CL_INVALID_ARG_VALUE", driver.ErrInvalidArgument},
	-51: {"CL_INVALID_ARG_SIZE", driver.ErrInvalidArgument},
	-52: {"CL_INVALID_KERNEL_ARGS", driver.ErrInvalidArgument},
	-53: {"CL_INVALID_WORK_DIMENSION", cgo.ErrRefused},
	-54: {"CL_INVALID_WORK_GROUP_SIZE", cgo.ErrRefused},
	-55: {"CL_INVALID_WORK_ITEM_SIZE", cgo.ErrRefused},
	-56: {"CL_INVALID_GLOBAL_OFFSET", cgo.ErrRefused},
	-57: {"CL_INVALID_EVENT_WAIT_LIST", driver.ErrInvalidArgument},
	-58: {"CL_INVALID_EVENT", driver.ErrInvalidArgument},
	-59: {"CL_INVALID_OPERATION", driver.ErrUnsupported},
	-60: {"CL_INVALID_GL_OBJECT", driver.ErrInvalidArgument},
	-61: {"CL_INVALID_BUFFER_SIZE", driver.ErrTooLarge},
	-62: {"CL_INVALID_MIP_LEVEL", driver.ErrInvalidArgument},
	-63: {"CL_INVALID_GLOBAL_WORK_SIZE", cgo.ErrRefused},
	-64: {"CL_INVALID_PROPERTY", driver.ErrInvalidArgument},
	-65: {"CL_INVALID_IMAGE_DESCRIPTOR", driver.ErrInvalidArgument},
	-66: {"CL_INVALID_COMPILER_OPTIONS", driver.ErrInvalidArgument},
	-67: {"CL_INVALID_LINKER_OPTIONS", driver.ErrInvalidArgument},
	-68: {"CL_INVALID_DEVICE_PARTITION_COUNT", driver.ErrInvalidArgument},
	-69: {"CL_INVALID_PIPE_SIZE", driver.ErrInvalidArgument},
	-70: {"CL_INVALID_DEVICE_QUEUE", driver.ErrInvalidArgument},
	-71: {"CL_INVALID_SPEC_ID", driver.ErrInvalidArgument},
	-72: {"CL_MAX_SIZE_RESTRICTION_EXCEEDED", driver.ErrTooLarge},

	codeNoPlatform:  {"CL_PLATFORM_NOT_FOUND_KHR", driver.ErrNoDevice},
	codeNVIDIAFault: {"NVIDIA: illegal access in a kernel", driver.ErrDeviceLost},
}

// codeName returns a code's name.
func codeName(code cl.ErrorCode) string {
	if c, ok := codes[code]; ok {
		return c.name
	}
	return "unknown OpenCL error"
}

// opError returns the error of an operation on a device. otherwise is the sentinel for codes whose
// sentinel depends on the operation.
func opError(device, op string, code cl.ErrorCode, otherwise error) error {
	is := codes[code].is
	if is == nil {
		is = otherwise
	}
	return &driver.OpError{Backend: name, Device: device, Op: op, Code: int(code), Detail: codeName(code), Err: is}
}

// failed returns the device's error for op, or nil for success.
func (d *device) failed(op string, code cl.ErrorCode, otherwise error) error {
	if code == cl.SUCCESS {
		return nil
	}
	if err := d.lost(); err != nil {
		return err
	}
	return opError(d.info.ID, op, code, otherwise)
}

// errorf returns an error of the device that has no code.
func (d *device) errorf(op string, is error, format string, args ...any) error {
	return &driver.OpError{Backend: name, Device: d.info.ID, Op: op, Detail: fmt.Sprintf(format, args...), Err: is}
}
