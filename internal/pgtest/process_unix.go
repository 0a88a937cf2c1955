//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// serverUser is the user of the servers if this program runs as root, which PostgreSQL
// refuses.
const serverUser = "postgres"

// identity returns the user and group of serverUser, or nil if this program does not run as
// root.
func identity() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(serverUser)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root, and the tests run it as user %s: %w; %s", serverUser, err, install)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// own changes the owner of a file or folder to the servers' user.
func own(path string) error {
	id, err := identity()
	if err != nil || id == nil {
		return err
	}
	return os.Chown(path, int(id.Uid), int(id.Gid))
}

// attributes returns the attributes to start a process as the servers' user, in its own
// session. Interrupts from a terminal do not reach it.
func attributes(dieWithUs bool) (*syscall.SysProcAttr, error) {
	id, err := identity()
	a := &syscall.SysProcAttr{Setsid: true, Credential: id}
	if dieWithUs {
		dieWithParent(a)
	}
	return a, err
}

// interrupt, quit and kill are the signals for a fast shutdown, an immediate shutdown, and an
// immediate end.
const (
	interrupt = syscall.SIGINT
	quit      = syscall.SIGQUIT
	kill      = syscall.SIGKILL
)

// signal sends a signal to a process that may have ended.
func signal(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%v to process %d: %w", sig, pid, err)
	}
	return nil
}

// freeze stops a process and its children without ending them.
func freeze(pid int) error {
	if err := signal(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	// A child forked before the stop appears in the list sooner or later. Every listed process
	// is stopped; stopping twice does no harm.
	for range 3 {
		if err := toChildren(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		<-pause()
	}
	return nil
}

// thaw continues a process and its children.
func thaw(pid int) error {
	return errors.Join(toChildren(pid, syscall.SIGCONT), signal(pid, syscall.SIGCONT))
}

// slay kills a process and its children.
func slay(pid int) error {
	if err := signal(pid, syscall.SIGSTOP); err != nil { // it starts no more children
		return err
	}
	return errors.Join(toChildren(pid, kill), signal(pid, kill))
}

func toChildren(pid int, sig syscall.Signal) error {
	pids, err := children(pid)
	for _, child := range pids {
		err = errors.Join(err, signal(child, sig))
	}
	return err
}

// children returns the child processes of a process.
func children(parent int) ([]int, error) {
	var pids []int
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err == nil && len(stats) > 0 {
		for _, name := range stats {
			text, err := os.ReadFile(name)
			if err != nil {
				continue // it ended
			}
			pid, rest, _ := strings.Cut(string(text), " ")
			// The state and the parent follow the program's name in parentheses.
			fields := strings.Fields(rest[strings.LastIndex(rest, ")")+1:])
			if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
				if n, err := strconv.Atoi(pid); err == nil {
					pids = append(pids, n)
				}
			}
		}
		return pids, nil
	}
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps -axo pid=,ppid=: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == strconv.Itoa(parent) {
			if n, err := strconv.Atoi(fields[0]); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids, nil
}
