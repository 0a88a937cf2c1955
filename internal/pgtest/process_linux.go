package pgtest

import "syscall"

// dieWithParent makes the system shut the process down when its parent ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
