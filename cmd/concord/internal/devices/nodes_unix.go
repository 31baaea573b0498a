//go:build unix

package devices

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

var nodePatterns = []string{"/dev/dri/card*", "/dev/dri/renderD*", "/dev/nvidia*", "/dev/kfd"}

// deviceNodes lists the existing device nodes.
func deviceNodes() []node { return nodesAt(nodePatterns) }

func nodesAt(patterns []string) []node {
	list := []node{}
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern) // the patterns are well formed
		for _, path := range paths {
			list = append(list, look(path))
		}
	}
	return list
}

func look(path string) node {
	n := node{Path: path}
	info, err := os.Stat(path)
	if err != nil {
		n.Error = err.Error()
		return n
	}
	n.Mode = info.Mode().String()
	group := ""
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		owner := strconv.FormatUint(uint64(st.Uid), 10)
		if u, err := user.LookupId(owner); err == nil {
			owner = u.Username
		}
		group = strconv.FormatUint(uint64(st.Gid), 10)
		if g, err := user.LookupGroupId(group); err == nil {
			group = g.Name
		}
		n.Owner = owner + ":" + group
	}
	// A directory (/dev/nvidia-caps) is only passed through.
	how := uint32(unix.R_OK | unix.W_OK)
	if info.IsDir() {
		how = unix.X_OK
	}
	n.ReadWrite = unix.Access(path, how) == nil
	if !n.ReadWrite {
		n.Remedy = "add yourself to the group " + group + " that owns it, and log in again"
	}
	return n
}
