//go:build unix && !aix

package builtin_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func init() { helpers["daemon"] = helpDaemon }

// helpDaemon starts a process that makes a session of its own, says its id,
// and leaves it behind with the standard streams.
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
