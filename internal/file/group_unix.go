//go:build unix

package file

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Many systems give each user a group of their own and new files write permission for
// the group (umask 002), so that permission for such a group is permission for nobody else.

// ownGroup returns the group that this process's user is alone in, or -1. It is the one of
// the files of users and groups: of a directory service nothing is known.
var ownGroup = sync.OnceValue(func() int64 {
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return -1
	}
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		return -1
	}
	return groupOfOne(string(users), string(groups), os.Geteuid())
})

// groupOfOne returns the primary group of a user if no other user has it, in the formats of
// passwd(5) and group(5); otherwise -1.
func groupOfOne(users, groups string, uid int) int64 {
	name, gid := "", ""
	for user := range records(users, 4) {
		if user[2] == strconv.Itoa(uid) && name == "" {
			name, gid = user[0], user[3]
		}
	}
	for user := range records(users, 4) {
		if user[3] == gid && user[0] != name {
			return -1
		}
	}
	own := int64(-1)
	for group := range records(groups, 4) {
		if group[2] != gid {
			continue
		}
		others := func(member string) bool { return member != "" && member != name }
		id, err := strconv.ParseUint(gid, 10, 32)
		if err != nil || slices.ContainsFunc(strings.Split(group[3], ","), others) {
			return -1
		}
		own = int64(id)
	}
	return own
}

// records yields the lines that have at least so many fields.
func records(text string, fields int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			parts := strings.Split(strings.TrimSuffix(line, "\n"), ":")
			if len(parts) >= fields && !strings.HasPrefix(line, "#") && !yield(parts) {
				return
			}
		}
	}
}
