//go:build unix

package file

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGroupOfOne(t *testing.T) {
	const users = "root:x:0:0:root:/root:/bin/sh\n# a remark\nann:x:1000:1000::/home/ann:/bin/sh\n" +
		"bob:x:1001:1001::/home/bob:/bin/sh\ncid:x:1002:100::/home/cid:/bin/sh\ndee:x:1003:100::/home/dee:/bin/sh\n" +
		"eve:x:1004:1004::/home/eve:/bin/sh\nfay:x:1005:1005::/home/fay:/bin/sh\nbroken\ngus:x:1006:none::/:/bin/sh\n"
	const groups = "root:x:0:\nann:x:1000:\nbob:x:1001:bob,ann\nusers:x:100:\neve:x:1004:eve\nnone:x:none:\n"
	for uid, want := range map[int]int64{
		0:    0,
		1000: 1000,
		1001: -1, // it has another member
		1002: -1, // another user has it, too
		1004: 1004,
		1005: -1, // its members are not known
		1006: -1,
		1007: -1, // no such user
	} {
		assert.Equal(t, want, groupOfOne(users, groups, uid), "user %d", uid)
	}
	assert.EqualValues(t, -1, groupOfOne("", "", 0))
	assert.EqualValues(t, -1, groupOfOne(users, groups+"more:x:1000:bob\n", 1000), "a second name with a member")
	assert.EqualValues(t, -1, groupOfOne(users+"ann2:x:1000:1000::/:/bin/sh\n", groups, 1000), "a second name of the user")
}

// Write permission for the group counts unless this user is alone in it; for others always.
func TestWritableByTheGroup(t *testing.T) {
	foreign := &syscall.Stat_t{Gid: uint32(ownGroup() + 1)}
	for _, mode := range []fs.FileMode{0o770, 0o720, 0o664, 0o775 | fs.ModeDir} {
		assert.True(t, writable(mode, foreign), "%v", mode)
		if own := ownGroup(); own >= 0 {
			assert.False(t, writable(mode, &syscall.Stat_t{Gid: uint32(own)}), "%v", mode)
			assert.True(t, writable(mode|0o002, &syscall.Stat_t{Gid: uint32(own)}), "%v", mode)
		}
	}
	assert.False(t, writable(0o755, foreign))
	assert.False(t, writable(0o777|fs.ModeSymlink, foreign), "a link has no permissions of its own")
}
