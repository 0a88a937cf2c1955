package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// stepLog is the step log: one line per event in a function of the user. Each line is one write to a file opened for
// appending, so a kill does not tear it and processes do not mix lines. It does not depend on the engine or the
// store.
type stepLog struct {
	file   *os.File
	life   int
	lines  atomic.Int64 // about tasks
	moment int64        // notify the parent after this many of them
}

// The kinds of lines.
const (
	lineBorn    = "born"    // the parent is about to start a process
	lineProcess = "process" // a phase of a process, in name
	lineKill    = "kill"    // a process is about to be killed
	lineEnter   = "enter"   // a handler was called; name is its concurrency key
	lineExit    = "exit"    // the handler returns; name is ok or no
	lineStart   = "start"   // the function of the step in name was called
	lineReturn  = "return"  // the function returns a value
	lineFail    = "fail"    // the function returns an error
	lineKept    = "kept"    // the handler has the value; name is the step and the attempt that made the value
)

// The phases of a worker.
const (
	phaseUp    = "up"    // main began
	phaseOpen  = "open"  // the database is open and migrated
	phaseDrain = "drain" // it was asked to end
	phaseLeft  = "left"  // the engine ended
	phaseEnd   = "end"   // the database is closed
)

// line is a line of the log.
type line struct {
	at      int64 // by the clock of the process, in nanoseconds
	life    int
	what    string
	task    string // "-" in lines about processes
	attempt int
	name    string
}

func stepLogPath(dir string) string { return filepath.Join(dir, "steps.log") }

func openStepLog(dir string, life int) (*stepLog, error) {
	f, err := os.OpenFile(stepLogPath(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &stepLog{file: f, life: life}, nil
}

func (w *stepLog) close() error { return w.file.Close() }

// task appends a line about a task. The process panics if the log cannot be written, because an incomplete log proves
// nothing.
func (w *stepLog) task(what, task string, attempt int, name string) {
	w.write(line{life: w.life, what: what, task: task, attempt: attempt, name: name})
	if w.lines.Add(1) == w.moment {
		fmt.Println(momentWord)
	}
}

// process appends a line about this process.
func (w *stepLog) process(what, name string) {
	w.write(line{life: w.life, what: what, task: "-", name: name})
}

func (w *stepLog) write(l line) {
	l.at = time.Now().UnixNano()
	if _, err := w.file.WriteString(l.String() + "\n"); err != nil {
		panic(fmt.Sprintf("the step log: %v", err))
	}
}

func (l line) String() string {
	return fmt.Sprintf("%d %d %s %s %d %s", l.at, l.life, l.what, l.task, l.attempt, l.name)
}

func readStepLog(dir string) (all []line, err error) {
	err = readLines(stepLogPath(dir), func(text string) error {
		f := strings.Split(text, " ")
		if len(f) != 6 {
			return fmt.Errorf("%q has %d words, want 6", text, len(f))
		}
		l := line{what: f[2], task: f[3], name: f[5]}
		var errs [3]error
		l.at, errs[0] = strconv.ParseInt(f[0], 10, 64)
		l.life, errs[1] = strconv.Atoi(f[1])
		l.attempt, errs[2] = strconv.Atoi(f[4])
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		all = append(all, l)
		return nil
	})
	return all, err
}
