//go:build unix && !aix

package builtin

import (
	"slices"
	"strings"
	"syscall"
)

// EndGuard kills the guard, as an operator who cleans up might.
func EndGuard() {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if guard.shell == 0 {
		panic("there is no guard")
	}
	if err := syscall.Kill(guard.shell, syscall.SIGKILL); err != nil {
		panic(err)
	}
	if _, err := syscall.Wait4(guard.shell, nil, 0, nil); err != nil {
		panic(err)
	}
}

// Guarded returns the process groups that the guard would end now.
func Guarded() []string {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if guard.table == nil {
		panic("there is no guard")
	}
	table := make([]byte, int(guard.seats)*seatSize)
	if _, err := guard.table.ReadAt(table, 0); err != nil {
		panic(err)
	}
	return slices.DeleteFunc(strings.Split(string(table), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}
