package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	redaction "github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// artifactCmd groups the verbs of artifacts.
type artifactCmd struct {
	Ls  artifactLsCmd  `cmd:"" help:"List the artifacts of a task or job."`
	Get artifactGetCmd `cmd:"" help:"Write the bytes of an artifact, or print the URL of a link."`
	GC  artifactGCCmd  `cmd:"" name:"gc" help:"Delete unused data from the bucket."`

	Accept artifactAcceptCmd `cmd:"" name:"accept-bucket" help:"Accept the bucket to which the blobs were moved."`
}

// artifactLsCmd is the verb artifact ls.
type artifactLsCmd struct {
	ID string `arg:"" name:"id" help:"Task or job: ID, ID prefix, job name, file, or JOB/TASK."`
}

// artifactList is the JSON output of artifact ls.
type artifactList struct {
	Artifacts []listedArtifact `json:"artifacts"`
}

// listedArtifact is an artifact with the name of its task in the job.
type listedArtifact struct {
	task.Artifact
	Node string `json:"node,omitempty"`
}

// Run implements the verb.
func (c *artifactLsCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		id, err := s.resolveOne(ctx, client, wantAny, c.ID)
		if err != nil {
			return err
		}
		list, err := s.artifactsOf(ctx, client, id)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(artifactList{orEmpty(list)})
		}
		if len(list) == 0 {
			s.printf("%s has no artifacts.\n", c.ID)
			return nil
		}
		s.list(s.artifactTable(list))
		return nil
	})
}

// artifactsOf reads the artifacts of a task, or of all tasks of a job.
func (s *session) artifactsOf(ctx context.Context, client *weaver.Client, id task.ID) ([]listedArtifact, error) {
	t, err := client.Get(ctx, id)
	tasks := []task.Task{t}
	if errors.Is(err, store.ErrNotFound) {
		var job jobTasks
		if job, err = readJob(ctx, client, id); errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("no task and no job %s in namespace %q of %s: %w", id, client.Namespace(), s.store(), store.ErrNotFound)
		}
		tasks = job.Tasks
	}
	if err != nil {
		return nil, err
	}
	var list []listedArtifact
	for i := range tasks {
		if tasks[i].StartedAt.IsZero() && tasks[i].State != task.Succeeded { // a task that was taken over from another job need not have started
			continue
		}
		own, err := client.Artifacts(ctx, tasks[i].ID)
		if err != nil {
			return nil, err
		}
		redaction.Artifacts(tasks[i].Redact, own)
		for _, a := range own {
			list = append(list, listedArtifact{a, tasks[i].Node})
		}
	}
	return list, nil
}

func (s *session) artifactTable(list []listedArtifact) *table {
	columns := []string{"ID", "TASK", "NAME", "SIZE", "CONTENT TYPE", "CREATED", "EXPIRES"}
	linked := slices.ContainsFunc(list, func(a listedArtifact) bool { return len(a.LinkValue) > 0 })
	if linked {
		columns = append(columns, "LINK")
	}
	t := newTable(columns...)
	t.gives = []give{{"CREATED", 0}, {"CONTENT TYPE", 0}, {"EXPIRES", 0}, {"TASK", 12}}
	for i := range list {
		a := &list[i]
		row := []cell{
			plain(a.ID.String()), plain(text.OneLine(cmp.Or(a.Node, a.TaskID.String()), explain.MaxNote)), plain(text.OneLine(a.Name, explain.MaxNote)),
			plain(artifactSize(&a.Artifact)), plain(text.OneLine(a.ContentType, explain.MaxNote)), s.when(a.CreatedAt), s.when(a.ExpiresAt),
		}
		if linked {
			row = append(row, plain(linkText(&a.Artifact)))
		}
		t.add(row...)
	}
	return t
}

// byteSize formats a number of bytes for people.
func byteSize(n int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/(1<<10), 0
	for size >= 1023.95 && unit < len(units)-1 {
		size, unit = size/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// noBucket returns the error for a missing bucket.
func (s *session) noBucket() error {
	folder, _ := s.bucketName()
	if folder == "" && s.flags.Bucket == "" {
		return badInput(bucketForms+" Workers on several machines need a bucket that all of them see.", "no bucket: %s has no default bucket", s.store())
	}
	if folder == "" {
		return badInput(bucketForms, "--bucket none: no bucket is in use")
	}
	return badInput("Name the bucket of this store's workers with --bucket or WEAVER_BUCKET.", "no bucket: the folder %s does not exist", folder)
}

// artifactGCCmd is the verb artifact gc.
type artifactGCCmd struct {
	UnusedFor age  `default:"1d" placeholder:"AGE" help:"Minimum age of an abandoned upload; default 1d."`
	DryRun    bool `help:"Print the amount without deleting it."`
}

// Help is shown by artifact gc --help.
func (artifactGCCmd) Help() string {
	return "Deletes expired artifacts of ended tasks, values of deleted tasks, and uploads of dead processes: those that began " +
		"--unused-for ago and that no task used since. Data that a task refers to stays. `weaver run` and `weaver worker` do the same " +
		"every minute."
}

// collected is the JSON output of artifact gc.
type collected struct {
	DryRun bool  `json:"dry_run,omitempty"`
	Blobs  int   `json:"blobs"`
	Bytes  int64 `json:"bytes,omitempty"` // of a dry run: before compression
}

// Run implements the verb.
func (c *artifactGCCmd) Run(ctx context.Context, s *session) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		// A collector with the wrong bucket would delete the records of bytes that stay in the other one.
		_, err := s.hasBucket()
		if err != nil {
			return err
		}
		done := collected{DryRun: c.DryRun}
		verb := "deleted"
		if c.DryRun {
			verb = "would be deleted"
			err = eachBlob(ctx, client, func(u *store.BlobUse) error {
				if u.Collectable(max(time.Duration(c.UnusedFor), 1)) {
					done.Blobs, done.Bytes = done.Blobs+1, done.Bytes+u.Size
				}
				return nil
			})
		} else {
			done.Blobs, err = client.CollectArtifacts(ctx, time.Duration(c.UnusedFor))
		}
		if s.json() {
			return errors.Join(err, s.writeJSON(done))
		}
		s.printf("%s %s", text.Plural(done.Blobs, "blob"), verb)
		if done.Bytes > 0 {
			s.printf(", of %s", byteSize(done.Bytes))
		}
		s.printf(".\n")
		if err != nil {
			return fmt.Errorf("%w; run the same command again for the rest", err)
		}
		return nil
	})
}

// blobPage is the number of blobs read at once.
const blobPage = 1000

// eachBlob calls fn with every blob of the namespace, page by page.
func eachBlob(ctx context.Context, client *weaver.Client, fn func(*store.BlobUse) error) error {
	r := client.Store()
	if !r.Capabilities().Has(store.CanListBlobs) {
		return badInput("", "this kind of store does not show its blobs")
	}
	for after := (task.ID{}); ; {
		page, err := r.Blobs(ctx, client.Namespace(), store.BlobFilter{After: after, Limit: blobPage})
		if err != nil {
			return err
		}
		for i := range page {
			if err := fn(&page[i]); err != nil {
				return err
			}
		}
		if len(page) < blobPage {
			return nil
		}
		after = page[len(page)-1].ID
	}
}

// sourceOf resolves the argument of artifact get: the ID of an artifact or blob, or TASK/NAME.
func (s *session) sourceOf(ctx context.Context, client *weaver.Client, arg string) (weaver.ArtifactRef, error) {
	if id, err := task.ParseID(arg); err == nil {
		return s.sourceByID(ctx, client, id)
	}
	var absent error // the task exists, but not the artifact
	for i := len(arg) - 2; i > 0; i-- {
		if arg[i] != '/' {
			continue
		}
		id, err := s.resolveOne(ctx, client, wantTask, arg[:i])
		if err == nil {
			var list []task.Artifact
			if list, err = client.Artifacts(ctx, id); err == nil {
				if a := artifactNamed(list, arg[i+1:]); a != nil {
					return refOf(a)
				}
				if absent == nil {
					absent = s.noArtifact(arg[:i], arg[i+1:], list)
				}
				continue
			}
		}
		if exitCode(err) != exitUsage {
			return weaver.ArtifactRef{}, err
		}
	}
	if absent == nil {
		absent = badInput(fmt.Sprintf("Write its id, or TASK/NAME; `%s` lists those of a job or task.", s.command("artifact", "ls", "ID")),
			"no artifact %q in namespace %q of %s", arg, client.Namespace(), s.store())
	}
	return weaver.ArtifactRef{}, absent
}

// artifactNamed returns the artifact of a task with a name or ID: the latest, if several steps created one.
func artifactNamed(list []task.Artifact, name string) *task.Artifact {
	for i := range slices.Backward(list) {
		if list[i].Name == name || list[i].ID.String() == strings.ToUpper(name) {
			return &list[i]
		}
	}
	return nil
}

func (s *session) noArtifact(of, name string, list []task.Artifact) error {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	has := "it has none"
	if len(names) > 0 {
		has = "it has " + text.OneLine(strings.Join(slices.Compact(names), ", "), explain.MaxMessage)
	}
	return badInput("", "task %s has no artifact %q%s; %s", of, name, didYouMean(name, names), has)
}

// sourceByID finds an artifact or the bytes of a large value by ID.
func (s *session) sourceByID(ctx context.Context, client *weaver.Client, id task.ID) (ref weaver.ArtifactRef, err error) {
	r := client.Store()
	if !r.Capabilities().Has(store.CanListBlobs) {
		return ref, badInput("", "this kind of store finds no artifact by its id: write TASK/NAME")
	}
	blob, err := store.BlobOf(ctx, r, client.Namespace(), id)
	if err == nil {
		return weaver.ArtifactRef{ID: id, Name: "blob " + id.String(), Blob: blob.Blob}, nil
	}
	var a task.Artifact
	if errors.Is(err, store.ErrNotFound) {
		a, err = r.Artifact(ctx, client.Namespace(), id)
	}
	if errors.Is(err, store.ErrNotFound) {
		return ref, badInput(fmt.Sprintf("`%s` lists those of a job or task.", s.command("artifact", "ls", "ID")),
			"no artifact and no blob %s in namespace %q of %s", id, client.Namespace(), s.store())
	}
	if err == nil && len(a.LinkValue) > 0 { // in its stored form: the client decrypts it
		var list []task.Artifact
		if list, err = client.Artifacts(ctx, a.TaskID); err == nil {
			if opened := artifactNamed(list, id.String()); opened != nil {
				a = *opened
			}
		}
	}
	if err != nil {
		return ref, err
	}
	return refOf(&a)
}
