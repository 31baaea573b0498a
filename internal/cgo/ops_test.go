//go:build cgo && unix

package cgo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func openOf(o *ops) string {
	var l opList
	o.open(&l, o.now())
	return l.String()
}

func TestOps(t *testing.T) {
	var o ops
	assert.Empty(t, openOf(&o), "nothing was queued")
	o.push("launch saxpy")
	assert.Equal(t, "launch saxpy", openOf(&o), "one operation is named")
	o.push("copy")
	o.push("launch saxpy")
	assert.Equal(t, "one of 3 operations (launch saxpy x 2, copy)", openOf(&o))
	var l opList
	o.open(&l, 1)
	assert.Equal(t, "launch saxpy", l.String(), "only the first")
	o.settle(2)
	o.settle(1)
	assert.Equal(t, "launch saxpy", openOf(&o), "completed operations are not named")
	o.settle(3)
	assert.Empty(t, openOf(&o))
}

func TestOpsAreBounded(t *testing.T) {
	var o ops
	for i := range 1000 {
		o.push(fmt.Sprintf("launch k%d", i))
	}
	text := openOf(&o)
	assert.Contains(t, text, "one of 1000 operations (..., launch k936, ", "the newest are remembered")
	assert.Contains(t, text, "launch k943, ...)", "a message names eight")
	o.settle(999)
	assert.Equal(t, "launch k999", openOf(&o))
}

func TestOpsOfSeveralStreams(t *testing.T) {
	var a, b ops
	a.push("copy")
	b.push("launch relu")
	var l opList
	a.open(&l, a.now())
	b.open(&l, b.now())
	assert.Equal(t, "one of 2 operations (copy, launch relu)", l.String())
}

func TestOpsAllocateNothing(t *testing.T) {
	var o ops
	assert.Zero(t, testing.AllocsPerRun(1000, func() { o.push("launch saxpy") }))
}
