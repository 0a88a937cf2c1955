//go:build !js

package plainfile

import "syscall"

// nonBlocking is a flag of os.OpenFile with which the open of a pipe does not wait.
const nonBlocking = syscall.O_NONBLOCK
