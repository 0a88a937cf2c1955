//go:build unix && !aix

package procgroup

import (
	"errors"
	"slices"
	"strings"
	"syscall"
)

var errNoGuard = errors.New("there is no guard")

// EndGuard kills the guard, as an operator might while cleaning up. It is for tests.
func EndGuard() error {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if guard.shell == 0 {
		return errNoGuard
	}
	if err := syscall.Kill(guard.shell, syscall.SIGKILL); err != nil {
		return err
	}
	_, err := syscall.Wait4(guard.shell, nil, 0, nil)
	return err
}

// Guarded returns the process groups in the guard's table. It is for tests.
func Guarded() ([]string, error) {
	guard.mu.Lock()
	defer guard.mu.Unlock()
	if guard.table == nil {
		return nil, errNoGuard
	}
	table := make([]byte, int(guard.seats)*seatSize)
	if _, err := guard.table.ReadAt(table, 0); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(string(table), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" }), nil
}
