package procgroup

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttr makes the command the leader of a session, which is also a
// process group. In the worker's session a command that reads from the
// terminal would be stopped, and its task hang; so it has no terminal.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitLeader returns when the leader has ended, and does not reap it. It
// reports false where the system cannot wait like that.
func (p *Process) awaitLeader() bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.leader.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// leaderEnded looks whether the leader has ended.
func (p *Process) leaderEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.leader.Pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// lives reports whether a group that exists has a member that is no zombie.
// Orphans that ended are reaped by process 1, which takes its time in some
// containers, or never does it; the kernel does not distinguish them. The
// processes are looked through only for a command that left some behind.
func (p *Process) lives() bool {
	if p.member != 0 && groupState(strconv.Itoa(p.member), p.leader.Pid) == alive {
		return true
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer shut(proc)
	names, err := proc.Readdirnames(-1)
	dead := 0
	for _, name := range names {
		pid, notOne := strconv.Atoi(name)
		if notOne != nil {
			continue
		}
		switch groupState(name, p.leader.Pid) {
		case alive:
			p.member = pid
			return true
		case zombie:
			dead++
		}
	}
	// None seen at all: this /proc shows other processes than those of this namespace.
	return err != nil || dead == 0 && p.signal(0)
}

type state int

const (
	other state = iota // in another group, or gone
	zombie
	alive
)

// groupState looks how a process is, if it belongs to a group; proc_pid_stat(5).
func groupState(pid string, pgid int) state {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return other
	}
	// pid (name) state ppid pgrp …; the name may have spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || string(fields[2]) != strconv.Itoa(pgid) {
		return other
	}
	if s := fields[0][0]; s == 'Z' || s == 'X' || s == 'x' {
		return zombie
	}
	return alive
}
