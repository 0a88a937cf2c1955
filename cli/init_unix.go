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

// forwarded are the signals that process 1 passes on. A stop by the terminal reaches the
// child by itself.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
}

// runAsInit runs this program once more, as a child of this process, if this is process 1
// of a container, and returns the child's exit code. Process 1 inherits every process that
// lost its parent (a daemon that a command started) and has to wait for it. It waits for
// all children here and starts no other one: nobody's exit status is taken away, as it
// would be in a process that runs commands. When it ends the system kills what is left.
//
// done is false if this is not process 1, or cannot find its own file.
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
		if !signal.Ignored(s) { // nohup: the child is to ignore it, too
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

// reapUntil passes signals on to a child and waits for all children until that one has
// ended. It returns its exit code; 128 and the number of a signal that ended it.
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
			return exitFailed // no child is left, which cannot be
		case pid != child:
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
