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
	assert.Equal(t, sealed, append(mark.Header(code), code...), "a header knows nothing of parts")
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
	assert.ErrorIs(t, err, driver.ErrCorrupt, "no code is no program")
}

// TestAnotherMark opens what was sealed as bytes of another kind, also with its mark exchanged.
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
