package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTable(t *testing.T) {
	var b bytes.Buffer
	tab := &table{}
	tab.add("a", "bb", "c")
	tab.add("\x1b[31mäöü\x1b[0m", "b", "c")
	tab.add("x", "a long last cell moves nothing")
	tab.write(&b, " ")
	assert.Equal(t, " a    bb  c\n \x1b[31mäöü\x1b[0m  b   c\n x    a long last cell moves nothing\n", b.String())
	assert.Equal(t, "x", newApp(&b, &b).paint(red, "x"), "no colour where no terminal is")
}
