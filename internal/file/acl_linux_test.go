package file

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The permissions of a group are the mask of an access control list: without the list
// they would be what the group may do.
func TestReplaceKeepsTheAccessControlList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, ^uint32(0)}, {2, 6, 54321}, {4, 0, ^uint32(0)}, {16, 6, ^uint32(0)}, {32, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	if err := unix.Setxattr(path, accessList, list, 0); err != nil {
		t.Skip("this file system has no access control lists: ", err)
	}
	require.NoError(t, Replace(path, text("new")))
	assert.Equal(t, "new", read(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o660, info.Mode().Perm(), "user, mask, others")
	kept := make([]byte, 1024)
	n, err := unix.Getxattr(path, accessList, kept)
	require.NoError(t, err, "the group has the mask's permissions now")
	assert.Equal(t, list, kept[:n])
}
