package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/text"
)

// paramFlags set the params of a pipeline.
type paramFlags struct {
	Param      []string `short:"p" sep:"none" placeholder:"NAME=VALUE" help:"Value of a pipeline's param; repeatable."`
	IncludeDir []string `sep:"none" env:"WEAVER_INCLUDE_DIR" placeholder:"DIR" help:"Additional folder of included files; repeatable."`
}

// values returns the given values by name.
func (f paramFlags) values() (map[string]string, error) {
	values := make(map[string]string, len(f.Param))
	for _, given := range f.Param {
		name, value, found := strings.Cut(given, "=")
		if !found || name == "" {
			return nil, badInput("", "-p %q: want NAME=VALUE, for example -p day=2026-11-20", given)
		}
		if old, twice := values[name]; twice {
			return nil, badInput("Keep one of them.", "-p %s is given twice, as %q and %q", name, old, value)
		}
		values[name] = value
	}
	return values, nil
}

// paramArgs returns the arguments that set params to the given values.
func paramArgs(values map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		args = append(args, "-p", name+"="+values[name])
	}
	return args
}

// paramArgsOf returns the param arguments that select a job among other jobs of its file.
func paramArgsOf(j *weaver.JobInfo) []string {
	return paramArgs(pipeline.ParamTexts(j.Meta[metaParams]))
}

// title returns the name of a job with the values of its params, a JSON object.
func title(name, params string) string {
	values := pipeline.ParamTexts(params)
	if len(values) == 0 {
		return name
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+"="+text.OneLine(values[name], explain.MaxNote))
	}
	return fmt.Sprintf("%s (%s)", name, strings.Join(parts, ", "))
}

// isOf reports whether a job belongs to the file and has the params of this run.
func (f *pipelineFile) isOf(j *weaver.JobInfo) bool {
	return j.Meta[metaFile] == f.path && f.SameParams(j.Meta[metaParams])
}

// again returns the command line that applies verb to the job of the file.
func (s *session) again(f *pipelineFile, verb string) string {
	args := append([]string{verb, f.given}, paramArgs(f.inputs.params)...)
	for _, dir := range f.inputs.include {
		args = append(args, "--include-dir", dir)
	}
	return s.command(args...)
}

// retryOf returns the command line that retries the job. It names the file if the file identifies this job.
func (r *pipelineRun) retryOf(st jobTasks) string {
	if len(r.file.Params) > 0 {
		return r.command("retry", st.ID.String())
	}
	return r.command("retry", r.file.given)
}

// takeParams reparses the file with the params of its latest job, for an update that names only the file. c is nil if
// there is no store.
func (s *session) takeParams(ctx context.Context, c *weaver.Client, f *pipelineFile) error {
	if !f.inputs.partial {
		return nil
	}
	in := f.inputs
	in.partial = false
	var latest *weaver.JobInfo
	if c != nil {
		var err error
		latest, err = latestOf(ctx, c, f.Name, func(j *weaver.JobInfo) bool { return j.Meta[metaFile] == f.path })
		if err != nil {
			return err
		}
		if latest != nil {
			in.params = pipeline.ParamTexts(latest.Meta[metaParams])
		}
	}
	maps.DeleteFunc(in.params, func(name, _ string) bool { // params that the file no longer has
		return !slices.ContainsFunc(f.Params, func(p pipeline.Param) bool { return p.Name == name })
	})
	anew, err := s.checkedFile(f.given, f.src, in)
	if wrong := (*exitError)(nil); latest != nil && errors.As(err, &wrong) {
		wrong.advice = fmt.Sprintf("nothing was run: without -p the params are those of its latest job, %s; give them anew", latest.ID)
	}
	if err != nil {
		return err
	}
	*f = *anew
	return nil
}

// paramWords completes the params of a pipeline named on the command line: their choices, or else their defaults.
func paramWords(words []string) []completion {
	var found []completion
	for _, word := range words {
		if ext := strings.ToLower(filepath.Ext(word)); ext != ".yaml" && ext != ".yml" {
			continue
		}
		src, err := readAtMost(word, maxRead)
		if err != nil {
			continue
		}
		f, err := parseFile(word, src, fileInputs{partial: true})
		if err != nil {
			continue
		}
		for _, p := range f.Params {
			choices := p.Choices
			if len(choices) == 0 {
				choices = []string{p.Default}
			}
			for _, value := range choices {
				found = append(found, completion{p.Name + "=" + value, cmp.Or(p.Description, "param of "+f.Name)})
			}
		}
	}
	return found
}
