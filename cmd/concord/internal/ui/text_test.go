package ui

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTable(t *testing.T) {
	var b bytes.Buffer
	tab := &Table{}
	tab.Add("a", "bb", "c")
	tab.Add("\x1b[31mäöü\x1b[0m", "b", "c")
	tab.Add("x", "a long last cell moves nothing")
	tab.Write(&b, " ")
	assert.Equal(t, " a    bb  c\n \x1b[31mäöü\x1b[0m  b   c\n x    a long last cell moves nothing\n", b.String())
	assert.Equal(t, "x", Paint(&b, Red, "x"), "no colour where no terminal is")
}
