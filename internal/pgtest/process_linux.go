package pgtest

import "syscall"

// dieWithParent has the system shut the process down when its parent ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
