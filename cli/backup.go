package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
)

// backupCmd is the verb backup.
type backupCmd struct {
	File string `arg:"" name:"file" help:"Path of the new file."`
}

// Help is shown by backup --help.
func (backupCmd) Help() string {
	return "Writes a consistent copy of the store into a new file while workers run. Until the file is complete it is named " +
		"FILE.partial-…; a killed backup leaves that file behind. The copy does not contain the output of commands, nor the bucket " +
		"with large values and artifacts: copy the bucket after the store. Copy a PostgreSQL store with pg_dump or with its " +
		"server's backups. To restore a file: stop all workers, move the store's file and its -wal and -shm files away, put the copy " +
		"in place, and run doctor --post-restore."
}

// backedUp is the JSON output of backup.
type backedUp struct {
	Store string `json:"store"`
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`

	Bucket string `json:"bucket,omitempty"` // the folder or S3 bucket to copy next
}

// Run implements the verb.
func (c *backupCmd) Run(ctx context.Context, s *session) error {
	if p, err := placeOf(s.flags.Store); err == nil && p.backupAdvice(c.File) != "" {
		return badInput(p.backupAdvice(c.File), "%s is copied by its database, not by this command", p.shown())
	}
	return s.withStore(ctx, false, func(st openedStore) error {
		if err := st.Ready(ctx); err != nil && !errors.Is(err, store.ErrNotMigrated) {
			return err
		}
		b, ok := st.(backuper)
		if !ok {
			return badInput("Use the backups of its database.", "%s cannot make backups itself", s.store())
		}
		if dir := filepath.Dir(c.File); !isFolder(dir) {
			return badInput("Create it first.", "the folder %s does not exist", dir)
		}
		size, err := b.Backup(ctx, c.File)
		if errors.Is(err, errBackupExists) {
			return badInput("Name a new file, or remove that one.", "%s exists already: a backup overwrites nothing", c.File)
		}
		if err != nil {
			return err
		}
		// The blobs of the copied rows are already in the bucket; later blobs do no harm.
		bucket, err := s.hasBucket()
		if err != nil {
			bucket = ""
		}
		if s.json() {
			return s.writeJSON(backedUp{s.store(), c.File, size, bucket})
		}
		s.printf("%s: %.1f MiB, all of %s.\n", c.File, float64(size)/(1<<20), s.store())
		if dir := s.logFolder(); dir != "" && isFolder(dir) {
			s.printf("The output of commands, in %s, is not in it.\n", dir)
		}
		if bucket != "" && s.remote != nil {
			s.printf("Large values and artifacts, in the bucket %s, are not in it: copy its objects now, after the store, and put them back with it.\n", bucket)
		} else if bucket != "" {
			s.printf("Large values and artifacts, in the bucket %s, are not in it: copy that folder now, after the store, and put it back with it.\n", bucket)
		}
		return nil
	})
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || errors.Is(err, fs.ErrPermission)
}

// printRestored explains the effect of a restore on tasks that were running.
func (s *session) printRestored(f *checkup) {
	s.printf("Namespace %q has a new generation: leases from before the restore can no longer write.\n", f.Namespace)
	if f.Ended > 0 {
		s.printf("%s ran when the backup was made: the leases have ended, and workers start these tasks again at once.\n", text.Plural(f.Ended, "task"))
	}
	if f.Due > 0 {
		s.printf("%s due by now, including sleeps and retries that ended since the backup: workers start them at once (`%s` holds them back).\n", areOrIs(f.Due, "task"), s.command("queue", "pause", "QUEUE"))
	}
	if f.Held > 0 {
		s.printf("%s held and not sent, because the partner may have them already: ask it, settle those that it has, and `%s` releases the others.\n", areOrIs(f.Held, "order"), s.command("order", "release"))
	}
	s.printf("The store lacks everything after the backup: steps, submitted and cancelled tasks, and signals. " +
		"Steps that ran since run again; their external effects happen twice unless they are idempotent.\n")
}

func areOrIs(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}
