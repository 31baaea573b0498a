//go:build unix

package file

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Many systems give each user a group of their own and make new files writable for it (umask 002).
// Write permission for such a group gives no other user access.

// ownGroup returns the group whose only member is this process's user, or -1. It reads the files of
// users and groups; groups of a directory service are not known.
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

// records yields the lines that have at least that number of fields.
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
