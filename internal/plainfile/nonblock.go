//go:build !js

package plainfile

import "syscall"

// nonBlocking is a flag of os.OpenFile that opens a pipe without waiting.
const nonBlocking = syscall.O_NONBLOCK
