package soak_test

import (
	"fmt"
	"os"
	"strings"
)

// descriptors returns the number of open files of this process.
func descriptors() (int, error) {
	open, err := os.ReadDir("/proc/self/fd")
	return len(open) - 1, err // one of them is the directory being read
}

// resident returns the resident memory of this process, in bytes.
func resident() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int64
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
		return 0, fmt.Errorf("read VmRSS of %q: %w", status, err)
	}
	return kib << 10, nil
}
