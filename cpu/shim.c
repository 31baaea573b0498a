//go:build cgo && unix

#include "../csrc/host/host.c"
