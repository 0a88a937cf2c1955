// Package attemptlog keeps what the commands of attempts write, byte for byte,
// in files of one folder.
//
// The layout, below the folder:
//
//	JOB/TASK.NO.log          the output of one attempt; JOB is "tasks" for a task without a job
//	JOB/TASK.NO.more/OFFSET  how it goes on from that byte, when it is long
//	.usage                   about how many bytes there are, and what was removed
//
// What always holds:
//
//   - A file holds the bytes as they were written, in that order, and nothing
//     else: a process that is killed leaves a log that ends early.
//   - One attempt keeps no more than Config.AttemptBytes: its first half, and its
//     end. A reader says how much is missing between them.
//   - The folder keeps about Config.FolderBytes. When there is more, the logs that
//     were written last the longest time ago are removed first, and never one
//     that is being written, by whatever process: its writer holds a lock of
//     the file, which ends with the process.
//   - An attempt that writes nothing has no file, and costs no system call.
//
// Several processes may use one folder. Nothing is synced to the disk: a log
// is no record of what was done, the store is.
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

// The default bounds.
const (
	DefaultAttemptBytes = 64 << 20
	DefaultFolderBytes  = 1 << 30
)

// Config configures a Folder.
type Config struct {
	Dir          string      // made with the first log, for its owner alone
	Beside       string      // a file to whose owner and group the folder belongs, with its mode; "": none
	AttemptBytes int64       // of one attempt at most; default DefaultAttemptBytes
	FolderBytes  int64       // of all, about; default DefaultFolderBytes
	Warn         func(error) // called once, when a log cannot be written; default: nothing
}

func (c *Config) as() owned.As { return owned.As{Path: c.Beside} }

// Folder is a folder of logs. Its methods are safe for concurrent use.
type Folder struct {
	cfg    Config
	warned sync.Once
	unsaid atomic.Int64 // bytes that were written and are not in .usage yet
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

// FolderBytes returns the bound of all logs.
func (f *Folder) FolderBytes() int64 { return f.cfg.FolderBytes }

// warn reports the first error of writing.
func (f *Folder) warn(err error) {
	f.warned.Do(func() {
		if f.cfg.Warn != nil {
			f.cfg.Warn(fmt.Errorf("keep the output of commands: %w", err))
		}
	})
}

// Attempt names an attempt.
type Attempt struct {
	Job  task.ID // zero: the task is in no job
	Task task.ID
	No   int
}

// path is the attempt's first file.
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

// moreDir is the folder of the files after the first.
func moreDir(first string) string { return strings.TrimSuffix(first, firstSuffix) + moreSuffix }

// partName is the file that goes on from an offset.
func partName(first string, offset int64) string {
	return filepath.Join(moreDir(first), strconv.FormatInt(offset, 10))
}

// firstOf returns the first file of the log that a file is of; false for a
// file of another kind.
func firstOf(path string) (first string, ok bool) {
	if strings.HasSuffix(path, firstSuffix) {
		return path, true
	}
	base, ok := strings.CutSuffix(filepath.Dir(path), moreSuffix)
	return base + firstSuffix, ok
}

// errLocked says that another process writes a log.
var errLocked = errors.New("another process is writing this log")
