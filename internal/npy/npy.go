// Package npy reads and writes NumPy's array files (.npy) of format 1.0, 2.0 and 3.0 with the
// element types of Concord.
//
// # Basics
//
// [ReadFile] and [Read] return an [Array] in C order and little-endian, whatever order the file
// has; [WriteFile] and [Write] write one. The format is described at
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
//
// # Caveats
//
// NumPy has no bfloat16: it is written as unsigned 16-bit integers and comes back
// as driver.U16, for the caller to reinterpret. Booleans come back as driver.U8.
// Nothing is ever unpickled: arrays of objects, strings, structures and complex
// numbers are driver.ErrUnsupported.
//
// Headers are not trusted: memory grows with the bytes that are present, so that a short file
// cannot cause a large allocation. An invalid file is an error that matches driver.ErrCorrupt
// (damaged or truncated), driver.ErrFormat (not such a file at all; it matches ErrCorrupt too) or
// driver.ErrTooLarge.
package npy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// maxDims is NumPy's own limit.
const maxDims = 64

// Array is an n-dimensional array in C order: the last index changes fastest. An
// empty Shape is a scalar, one element.
type Array struct {
	Type  driver.Type
	Shape []int
	Data  []byte // little-endian; its length is exactly that of the elements of Type and Shape
}

// Len returns the number of elements, or -1 if the shape is not a valid one.
func (a Array) Len() int {
	n, err := size(a.Shape, 1)
	if err != nil {
		return -1
	}
	return n
}

// size returns the bytes of a shape with elements of elem bytes. The check for overflow ignores
// dimensions of zero, as NumPy's does: (0, 2^62, 2^62) is refused although it has no elements.
func size(shape []int, elem int) (int, error) {
	if len(shape) > maxDims {
		return 0, fmt.Errorf("npy: %d dimensions, at most %d: %w", len(shape), maxDims, driver.ErrTooLarge)
	}
	n := elem
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("npy: dimension %d is negative: %w", d, driver.ErrFormat)
		}
		if d == 0 {
			continue
		}
		if n > math.MaxInt/d {
			return 0, fmt.Errorf("npy: shape %v of %d byte elements: %w", shape, elem, driver.ErrTooLarge)
		}
		n *= d
	}
	if slices.Contains(shape, 0) {
		return 0, nil
	}
	return n, nil
}

// descr is the type of the elements of a file.
type descr struct {
	elem  driver.Type
	big   bool // most significant byte first
	truth bool // NumPy's bool, whose elem is driver.U8
}

// kinds maps the part of NumPy's name of a type that follows the byte order.
var kinds = map[string]driver.Type{
	"f2": driver.F16, "f4": driver.F32, "f8": driver.F64,
	"i1": driver.I8, "i2": driver.I16, "i4": driver.I32, "i8": driver.I64,
	"u1": driver.U8, "u2": driver.U16, "u4": driver.U32, "u8": driver.U64,
	"b1": driver.U8,
}

// typeChars are the characters of a type's name: "M8[ns]" is a name, of an unsupported type, and
// "f4, " is not.
const typeChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789[]"

// parseDescr reads a name such as "<f4" or "|u1". The byte order is mandatory: "=f4" and "f4" mean
// that of the machine that wrote the file, which is unknown.
func parseDescr(s string) (descr, error) {
	if s == "" {
		return descr{}, fmt.Errorf("npy: element type is empty: %w", driver.ErrFormat)
	}
	elem, known := kinds[s[1:]]
	if strings.Trim(s[1:], typeChars) != "" {
		return descr{}, fmt.Errorf("npy: element type %.40q: %w", s, driver.ErrFormat)
	}
	if _, bare := kinds[s]; bare || s[0] == '=' {
		return descr{}, fmt.Errorf("npy: element type %q has no byte order: %w", s, driver.ErrFormat)
	}
	if !known {
		return descr{}, fmt.Errorf("npy: element type %.40q: %w", s, driver.ErrUnsupported)
	}
	switch order := s[0]; {
	case order == '<', order == '>', order == '|' && elem.Size() == 1:
		return descr{elem: elem, big: order == '>', truth: s[1:] == "b1"}, nil
	}
	return descr{}, fmt.Errorf("npy: element type %.40q has no byte order: %w", s, driver.ErrFormat)
}

// descrOf returns NumPy's name of a type.
func descrOf(t driver.Type) (string, error) {
	if t == driver.BF16 {
		return "<u2", nil
	}
	for name, elem := range kinds {
		if elem == t && name != "b1" {
			if t.Size() == 1 {
				return "|" + name, nil
			}
			return "<" + name, nil
		}
	}
	return "", fmt.Errorf("npy: element type %v: %w", t, driver.ErrInvalidArgument)
}
