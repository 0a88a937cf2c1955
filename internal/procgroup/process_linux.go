package procgroup

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttr makes the command the leader of a session, which is also a process group. The session has no terminal.
// In the worker's session a command that reads from the terminal would be stopped, and its task would hang.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitLeader waits until the leader has ended, without reaping it. It returns false if the system cannot wait this
// way.
func (p *Process) awaitLeader() bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.leader.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// leaderEnded reports whether the leader has ended.
func (p *Process) leaderEnded() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.leader.Pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

// lives reports whether an existing group has a member that is not a zombie. Process 1 reaps orphans that ended; in
// some containers it does so late or never, and kill(2) does not tell zombies apart. The process table is scanned
// only for a command that left members behind.
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
	// No member seen: this /proc shows another PID namespace.
	return err != nil || dead == 0 && p.signal(0)
}

type state int

const (
	other state = iota // in another group, or gone
	zombie
	alive
)

// groupState returns the state of a process if it belongs to the group; see proc_pid_stat(5).
func groupState(pid string, pgid int) state {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return other
	}
	// The format is "pid (name) state ppid pgrp …"; the name may have spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || string(fields[2]) != strconv.Itoa(pgid) {
		return other
	}
	if s := fields[0][0]; s == 'Z' || s == 'X' || s == 'x' {
		return zombie
	}
	return alive
}
