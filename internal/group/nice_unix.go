//go:build unix && !aix && !solaris && !illumos

package group

import (
	"os"
	"syscall"
)

// Nice gives this process the lowest priority, so that it computes when nobody else does. It is called when the
// process begins, in the first process of a group: threads that are there already get the priority, too.
func Nice() {
	const lowest = 19
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, lowest) // on Linux a process is its first thread alone
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, lowest)
}
