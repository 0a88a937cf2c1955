package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/pipeline/value"
)

// artifactsStep is the step that keeps the files and the output of a command.
// After it is recorded the command does not run again.
const artifactsStep = "artifacts"

// maxArtifacts is the maximum number of files kept for one command.
const maxArtifacts = 1000

// keeps reports whether the command has files to keep.
func (in *RunInput) keeps() bool { return len(in.Artifacts)+len(in.ArtifactsOptional) > 0 }

func (in *RunInput) validateArtifacts() (problems []error) {
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"artifacts", in.Artifacts}, {"artifacts_optional", in.ArtifactsOptional}} {
		for i, p := range list.patterns {
			if err := value.CheckPattern(p); err != nil {
				problems = append(problems, fmt.Errorf("%s[%d] is %q: %w", list.key, i, p, err))
			}
		}
	}
	switch {
	case in.ArtifactsTTL < 0:
		problems = append(problems, errors.New("artifacts_ttl is negative"))
	case in.ArtifactsTTL > 0 && !in.keeps():
		problems = append(problems, errors.New("artifacts_ttl is given, and neither artifacts nor artifacts_optional: write which files are kept"))
	}
	return problems
}

// kept returns the output of a command whose files an earlier attempt kept before
// it ended without storing the output.
func (in *RunInput) kept(ctx context.Context) (out RunOutput, done bool, err error) {
	a, err := engine.From(ctx)
	if err != nil {
		return out, false, err
	}
	if a.Recorded(artifactsStep) {
		out, err = weaver.Step(ctx, artifactsStep, func(context.Context) (RunOutput, error) { return out, errors.New("it is recorded") })
		return out, true, err
	}
	return out, false, a.NeedBucket("keep the artifacts of a command")
}

// keep stores the files of a command together with its output. Crash here: the
// stored files belong to no step, and a collector deletes them; the command runs
// again if another attempt is allowed.
func (in *RunInput) keep(ctx context.Context, out RunOutput) (RunOutput, error) {
	dir := os.DirFS(folderOf(in.Dir))
	names, err := in.files(dir)
	if err != nil {
		return out, err
	}
	kept, err := weaver.Step(ctx, artifactsStep, func(ctx context.Context) (RunOutput, error) {
		for _, name := range names {
			if err := in.putFile(ctx, dir, name); err != nil {
				return out, err
			}
		}
		return out, nil
	})
	if err != nil && ctx.Err() == nil {
		// The command ran: the task's attempts decide whether it may run again, as after a
		// failure of the command. An error of the engine would be retried in any case.
		err = errors.New("the command succeeded, and its artifacts cannot be kept: " + err.Error())
	}
	return kept, err
}

func folderOf(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

func (in *RunInput) putFile(ctx context.Context, dir fs.FS, name string) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	var opts []weaver.ArtifactOption
	if in.ArtifactsTTL > 0 {
		opts = append(opts, weaver.TTL(time.Duration(in.ArtifactsTTL)))
	}
	_, err = weaver.PutArtifact(ctx, name, f, opts...)
	return errors.Join(err, f.Close())
}

// files returns the files that match the patterns, without duplicates, sorted. A
// pattern of Artifacts without a match is an error.
func (in *RunInput) files(dir fs.FS) ([]string, error) {
	var all []string
	for i, p := range slices.Concat(in.Artifacts, in.ArtifactsOptional) {
		found, err := filesLike(dir, p)
		switch {
		case err != nil:
			return nil, fmt.Errorf("artifacts: %q: %w", p, err)
		case len(found) == 0 && i < len(in.Artifacts):
			return nil, fmt.Errorf("artifacts: %q matches no file in %s: the command succeeded and did not write it; what it need not write belongs into artifacts_optional", p, in.place())
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxArtifacts {
		return nil, weaver.Permanent(fmt.Errorf("artifacts: %d files in %s match, and at most %d are kept: let the command pack them into an archive", len(all), in.place(), maxArtifacts))
	}
	return all, nil
}

func (in *RunInput) place() string {
	if abs, err := filepath.Abs(folderOf(in.Dir)); err == nil {
		return abs
	}
	return folderOf(in.Dir)
}

// filesLike returns the regular files whose names match a pattern. As in a shell,
// only a dot matches the initial dot of a name.
func filesLike(dir fs.FS, pattern string) (files []string, err error) {
	found, err := fs.Glob(dir, pattern)
	for _, name := range found {
		info, serr := fs.Stat(dir, name)
		if serr == nil && info.Mode().IsRegular() && !dotted(pattern, name) {
			files = append(files, name)
		}
	}
	return files, err
}

func dotted(pattern, name string) bool {
	for pattern != "." && name != "." {
		if strings.HasPrefix(path.Base(name), ".") && !strings.HasPrefix(path.Base(pattern), ".") {
			return true
		}
		pattern, name = path.Dir(pattern), path.Dir(name)
	}
	return false
}
