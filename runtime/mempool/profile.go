package mempool

// Live memory as a profile for go tool pprof: samples are blocks and bytes, by the stacks that
// allocated them. The format is the protocol buffer of
// https://github.com/google/pprof/blob/main/proto/profile.proto. Only the necessary fields are
// written; runtime/pprof cannot write them, since it only counts.

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	goruntime "runtime"
	"time"
)

// WriteProfile writes a profile of live memory that was allocated with tracking on.
func (p *Pool) WriteProfile(w io.Writer) error {
	var e profile
	e.strings = map[string]uint64{"": 0}
	e.order = []string{""}
	e.functions = map[string]uint64{}
	e.locations = map[uintptr]uint64{}
	valueType := func(kind, unit string) message {
		var m message
		m.number(1, e.text(kind))
		m.number(2, e.text(unit))
		return m
	}
	e.out.bytes(1, valueType("inuse_objects", "count"))
	e.out.bytes(1, valueType("inuse_space", "bytes"))
	for _, h := range p.Holders() {
		if h.Stack == nil {
			continue
		}
		var m, at, values message
		for _, pc := range h.Stack {
			at.varint(e.location(pc))
		}
		values.varint(uint64(h.Blocks))
		values.varint(uint64(h.Bytes))
		m.bytes(1, at)
		m.bytes(2, values)
		e.out.bytes(2, m)
	}
	for _, s := range e.order {
		e.out.bytes(6, message(s))
	}
	e.out.number(9, uint64(time.Now().UnixNano()))
	z := gzip.NewWriter(w)
	if _, err := z.Write(e.out); err != nil {
		return err
	}
	return z.Close()
}

// profile is the output so far, and the numbers of its strings, functions and locations.
type profile struct {
	out       message
	strings   map[string]uint64
	order     []string
	functions map[string]uint64
	locations map[uintptr]uint64
}

func (e *profile) text(s string) uint64 {
	n, known := e.strings[s]
	if !known {
		n = uint64(len(e.order))
		e.strings[s] = n
		e.order = append(e.order, s)
	}
	return n
}

// location writes one program location, with the functions that were inlined there.
func (e *profile) location(pc uintptr) uint64 {
	if n, known := e.locations[pc]; known {
		return n
	}
	n := uint64(len(e.locations) + 1)
	e.locations[pc] = n
	var m message
	m.number(1, n)
	m.number(3, uint64(pc))
	frames := goruntime.CallersFrames([]uintptr{pc})
	for {
		f, more := frames.Next()
		var line message
		line.number(1, e.function(f.Function, f.File))
		line.number(2, uint64(f.Line))
		m.bytes(4, line)
		if !more {
			break
		}
	}
	e.out.bytes(4, m)
	return n
}

func (e *profile) function(name, file string) uint64 {
	if n, known := e.functions[name]; known {
		return n
	}
	n := uint64(len(e.functions) + 1)
	e.functions[name] = n
	var m message
	m.number(1, n)
	m.number(2, e.text(name))
	m.number(3, e.text(name))
	m.number(4, e.text(file))
	e.out.bytes(5, m)
	return n
}

// message is an encoded protocol buffer.
type message []byte

func (m *message) varint(v uint64) {
	*m = binary.AppendUvarint(*m, v)
}

func (m *message) number(field int, v uint64) {
	m.varint(uint64(field) << 3)
	m.varint(v)
}

func (m *message) bytes(field int, v message) {
	m.varint(uint64(field)<<3 | 2)
	m.varint(uint64(len(v)))
	*m = append(*m, v...)
}
