//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/goweaver/weaver/internal/group"
)

// forwarded lists the signals that process 1 forwards. A stop from the terminal reaches the child directly.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

// runAsInit runs this program again as a child if this process is process 1 of a container, and returns the child's
// exit code. Process 1 adopts every orphan (such as a daemon that a command started) and has to reap it. This process
// starts no other child, so waiting for all children takes no exit status from another waiter. In a process that runs
// commands it would. When process 1 ends, the system kills the remaining processes.
//
// done is false if this process is not process 1 or cannot find its own file.
func runAsInit() (code int, done bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	path, err := os.Executable()
	if err != nil {
		return 0, false
	}
	received := make(chan os.Signal, 16)
	for _, s := range forwarded {
		if !signal.Ignored(s) { // nohup: the child must ignore it, too
			signal.Notify(received, s)
		}
	}
	defer signal.Stop(received)
	child, err := os.StartProcess(path, os.Args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, false
	}
	return reapUntil(child.Pid, received), true
}

// reapUntil forwards signals to a child and reaps all children until that child has ended. It returns the child's
// exit code, or 128 plus the number of the signal that ended it.
func reapUntil(child int, received <-chan os.Signal) int {
	g := group.New(context.Background())
	defer g.Cancel(nil)
	g.Go("signals", func(ctx context.Context) error {
		for {
			select {
			case s := <-received:
				_ = syscall.Kill(child, s.(syscall.Signal)) // it may have ended just now
			case <-ctx.Done():
				return nil
			}
		}
	})
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return exitFailed // unreachable: no child is left
		case pid != child:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
