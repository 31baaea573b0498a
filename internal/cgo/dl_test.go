package cgo

import (
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

func TestLoader(t *testing.T) {
	_, err := Open("/no/such/library.so")
	require.Error(t, err)
	if errors.Is(err, driver.ErrUnsupported) {
		t.Skip(err)
	}
	assert.Contains(t, err.Error(), "/no/such/library.so", "the loader's own words")
	_, err = Open("with\x00zero")
	require.Error(t, err)

	name := map[string]string{"linux": "libc.so.6", "darwin": "/usr/lib/libSystem.B.dylib"}[goruntime.GOOS]
	if name == "" {
		t.Skip("no library known to be there")
	}
	lib, err := Open(name)
	require.NoError(t, err)
	at, err := lib.Lookup("malloc")
	require.NoError(t, err)
	assert.NotNil(t, at)
	_, err = lib.Lookup("concord_no_such_symbol")
	require.Error(t, err)
	assert.Contains(t, err.Error(), "concord_no_such_symbol")
	require.NoError(t, lib.Close())

	var none Library
	_, err = none.Lookup("malloc")
	require.Error(t, err)
	require.NoError(t, none.Close())
}
