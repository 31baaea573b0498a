//go:build cgo && metal && (darwin || simmetal)

#include "../csrc/metal/metal.m"
