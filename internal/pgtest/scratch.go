package pgtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// watchdog ends every process in the folder $0 once its input ends, that is when the program
// that started it has ended, and removes the folder. It recognizes a reused process ID by the
// working directory.
const watchdog = `
trap '' HUP INT TERM QUIT
cat >/dev/null
{
running=
for file in "$0"/*/data/postmaster.pid "$0"/*/pgbouncer.pid; do
	[ -f "$file" ] && read -r pid <"$file" || continue
	case "$(readlink "/proc/$pid/cwd")" in
	"$0"/* | '') kill -0 "$pid" && running="$running $pid" ;;
	esac
done
for file in /proc/[0-9]*/stat; do # children of a paused server
	[ -f "$file" ] && read -r child name state parent rest <"$file" || continue
	case "$running " in *" $parent "*) kill -CONT "$child" ;; esac
done
for pid in $running; do
	kill -CONT "$pid"
	kill -QUIT "$pid"
done
tries=0
while [ -n "$running" ]; do
	[ "$tries" -lt 100 ] || kill -KILL $running
	[ "$tries" -lt 110 ] || break
	tries=$((tries + 1))
	left=
	for pid in $running; do
		kill -0 "$pid" && left="$left $pid"
	done
	running=$left
	[ -z "$running" ] || sleep 0.1
done
} 2>/dev/null
rm -rf "$0" 2>/dev/null || { sleep 1; rm -rf "$0"; }
`

// holdOpen holds the pipe that the watchdog reads. The system closes it.
var holdOpen []io.Closer

// scratch creates the folder for everything that this program starts, and starts the watchdog.
var scratch = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return "", err
	}
	if err := own(dir); err != nil {
		return "", err
	}
	cmd := exec.Command("/bin/sh", "-c", watchdog, dir)
	cmd.Env = environment()
	cmd.Dir = "/"
	if cmd.SysProcAttr, err = attributes(false); err != nil {
		return "", err
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	holdOpen = append(holdOpen, pipe)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start what stops the servers of tests: %w", err)
	}
	return dir, nil
})

var folders atomic.Int64

// folder creates an empty folder in scratch.
func folder(name string) (string, error) {
	base, err := scratch()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, name+strconv.FormatInt(folders.Add(1), 10))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	return dir, own(dir)
}

// environment returns the environment of the programs, without the user's settings.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=/"}
}

// run runs a program as the servers' user to its end.
func run(program string, args ...string) error {
	base, err := scratch()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = base, environment()
	if cmd.SysProcAttr, err = attributes(false); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// process is a running server.
type process struct {
	pid    int
	exited chan struct{} // closed when it has ended
}

// launch starts a server in dir, with its output in the file logName there. On Linux the
// system ends it when this program ends, also without the watchdog.
func launch(dir, logName, program string, args ...string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment(), log, log
	if cmd.SysProcAttr, err = attributes(true); err != nil {
		return nil, err
	}
	p := &process{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The signal depends on the thread that started the process, so the thread must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		_ = log.Close() // the process has its own
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // its log has the reason for its end
			close(p.exited)
		}
	}()
	return p, <-started
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}
