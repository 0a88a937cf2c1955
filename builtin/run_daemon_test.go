//go:build unix && !aix

package builtin_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func init() { helpers["daemon"] = helpDaemon }

// helpDaemon starts a process in a session of its own that keeps the standard
// streams open, and prints its ID.
func helpDaemon(string) error {
	cmd := exec.Command("sleep", "60")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println(cmd.Process.Pid)
	return nil
}
