package seal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
)

const mark seal.Mark = "CNCDTST1"

func TestSeal(t *testing.T) {
	sealed := mark.Seal([]byte("co"), []byte("de"))
	code, err := mark.Open(sealed)
	require.NoError(t, err)
	assert.Equal(t, "code", string(code))
	assert.Equal(t, sealed, append(mark.Header(code), code...), "the header does not depend on how the bytes are "+
		"divided into parts")
	n, err := mark.Length(sealed[:seal.Size])
	require.NoError(t, err)
	assert.EqualValues(t, 4, n)
	for n := range len(sealed) {
		_, err := mark.Open(sealed[:n])
		require.ErrorIs(t, err, driver.ErrCorrupt, "cut to %d bytes", n)
	}
	for i := range sealed {
		damaged := append([]byte(nil), sealed...)
		damaged[i] ^= 1
		_, err := mark.Open(damaged)
		require.ErrorIs(t, err, driver.ErrCorrupt, "byte %d", i)
	}
	_, err = mark.Open([]byte("something else altogether, and quite long at that......"))
	assert.ErrorIs(t, err, driver.ErrFormat)
	_, err = mark.Open(mark.Seal(nil))
	assert.ErrorIs(t, err, driver.ErrCorrupt, "a seal of no bytes is refused")
}

// TestAnotherMark checks that bytes sealed with another mark are refused, also if the mark in their
// header is replaced.
func TestAnotherMark(t *testing.T) {
	const other seal.Mark = "CNCDTST2"
	sealed := other.Seal([]byte("code"))
	_, err := mark.Open(sealed)
	assert.ErrorIs(t, err, driver.ErrFormat)
	_, err = mark.Length(sealed)
	assert.ErrorIs(t, err, driver.ErrFormat)
	_, err = mark.Open(append([]byte(mark), sealed[len(mark):]...))
	assert.ErrorIs(t, err, driver.ErrCorrupt)
}
