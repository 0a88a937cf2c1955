// Package attemptlog stores the output of attempts' commands, byte for byte, in the files of one folder.
//
// The layout below the folder:
//
//	JOB/TASK.NO.log          the output of one attempt; JOB is "tasks" for a task without a job
//	JOB/TASK.NO.more/OFFSET  the continuation of a long log from that byte
//	.usage                   approximate number of bytes, and the age of removed logs
//
// Invariants:
//
//   - A file holds the bytes as they were written, in order, and nothing else: a
//     process that is killed leaves a log that ends early.
//   - One attempt keeps at most Config.AttemptBytes: its first half and its end. A
//     reader reports the number of missing bytes between them.
//   - The folder keeps about Config.FolderBytes. Above that, the logs with the oldest
//     last write are removed first. A log that any process is writing is never
//     removed: its writer holds a lock of the file, which ends with the process.
//   - An attempt without output has no file and costs no system call.
//
// Several processes may use one folder. Files are not synced to disk: the durable record is the store, not the log.
package attemptlog

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goweaver/weaver/internal/owned"
	"github.com/goweaver/weaver/task"
)

// Default limits.
const (
	DefaultAttemptBytes = 64 << 20
	DefaultFolderBytes  = 1 << 30
)

// Config configures a Folder.
type Config struct {
	Dir          string      // created with the first log, for its owner alone
	Beside       string      // a file whose owner, group and mode the folder gets; "" for no such file
	AttemptBytes int64       // maximum per attempt; default DefaultAttemptBytes
	FolderBytes  int64       // approximate maximum of all logs; default DefaultFolderBytes
	Warn         func(error) // called once if a log cannot be written; default: no call
}

func (c *Config) as() owned.As { return owned.As{Path: c.Beside} }

// Folder is a folder of logs. Its methods are safe for concurrent use.
type Folder struct {
	cfg    Config
	warned sync.Once
	unsaid atomic.Int64 // bytes written but not yet added to .usage
	saying sync.Mutex   // held while .usage is changed
}

// New returns the folder of cfg. It touches no file.
func New(cfg Config) *Folder {
	cfg.AttemptBytes = max(cmp.Or(cfg.AttemptBytes, DefaultAttemptBytes), 4)
	cfg.FolderBytes = cmp.Or(cfg.FolderBytes, DefaultFolderBytes)
	return &Folder{cfg: cfg}
}

// Dir returns the folder's path.
func (f *Folder) Dir() string { return f.cfg.Dir }

// FolderBytes returns the size limit of all logs.
func (f *Folder) FolderBytes() int64 { return f.cfg.FolderBytes }

// warn reports the first write error.
func (f *Folder) warn(err error) {
	f.warned.Do(func() {
		if f.cfg.Warn != nil {
			f.cfg.Warn(fmt.Errorf("keep the output of commands: %w", err))
		}
	})
}

// Attempt identifies an attempt.
type Attempt struct {
	Job  task.ID // zero for a task without a job
	Task task.ID
	No   int
}

// path returns the path of the attempt's first file.
func (f *Folder) path(a Attempt) string {
	job := "tasks"
	if a.Job != (task.ID{}) {
		job = a.Job.String()
	}
	return filepath.Join(f.cfg.Dir, job, fmt.Sprintf("%s.%d%s", a.Task, a.No, firstSuffix))
}

const (
	firstSuffix = ".log"
	moreSuffix  = ".more"
)

// moreDir returns the folder of the files after the first.
func moreDir(first string) string { return strings.TrimSuffix(first, firstSuffix) + moreSuffix }

// partName returns the path of the file that continues the log from an offset.
func partName(first string, offset int64) string {
	return filepath.Join(moreDir(first), strconv.FormatInt(offset, 10))
}

// firstOf returns the first file of the log that a file belongs to; ok is false for a file of another kind.
func firstOf(path string) (first string, ok bool) {
	if strings.HasSuffix(path, firstSuffix) {
		return path, true
	}
	base, ok := strings.CutSuffix(filepath.Dir(path), moreSuffix)
	return base + firstSuffix, ok
}

// errLocked reports that another process is writing a log.
var errLocked = errors.New("another process is writing this log")
