package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/internal/pipeline"
	"github.com/goweaver/weaver/internal/text"
)

type checkCmd struct {
	Files []string `arg:"" name:"file" help:"Pipeline files (YAML)."`
	paramFlags
}

// checked is the JSON form of a checked file.
type checked struct {
	File     string        `json:"file"`
	OK       bool          `json:"ok"`
	Name     string        `json:"name,omitempty"`  // name of the pipeline
	Tasks    int           `json:"tasks,omitempty"` // number of tasks
	Mistakes []fileMistake `json:"mistakes"`
	More     int           `json:"more,omitempty"` // number of further mistakes
	Warnings []fileMistake `json:"warnings"`
}

// fileMistake is the JSON form of a mistake. A mistake about the whole file has no line.
type fileMistake struct {
	File    string `json:"file,omitempty"`   // the included file, as the path is written
	Line    int    `json:"line,omitempty"`   // from 1
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Length  int    `json:"length,omitempty"` // in characters
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

type checkResult struct {
	OK    bool      `json:"ok"`
	Files []checked `json:"files"`
}

// Run implements the verb. It accepts task types that this program does not know: a worker of another program may
// handle them. Required params may be missing; parts that need them are not checked.
func (c *checkCmd) Run(s *session) error {
	params, err := c.values()
	if err != nil {
		return err
	}
	res := checkResult{OK: true}
	bad := 0
	for _, given := range c.Files {
		var f *pipelineFile
		src, err := s.readFile(given)
		if err == nil {
			f, err = parseFile(given, src, fileInputs{pipeline.Types{Known: s.types()}, params, true, c.IncludeDir})
		}
		if err != nil {
			bad++
			res.OK = false
		}
		res.Files = append(res.Files, s.checked(given, f, src, err))
	}
	switch {
	case s.json():
		if err := s.writeJSON(res); err != nil {
			return err
		}
		if bad > 0 {
			return silent(exitUsage)
		}
		return nil
	case bad > 0 && len(c.Files) > 1:
		return badInput("", "%d of %s have mistakes", bad, text.Plural(len(c.Files), "file"))
	case bad > 0:
		return silent(exitUsage)
	}
	return nil
}

// checked returns the result for a file and, without -o json, prints it.
func (s *session) checked(given string, f *pipelineFile, src []byte, err error) checked {
	got := checked{File: given, OK: err == nil, Mistakes: []fileMistake{}, Warnings: []fileMistake{}}
	var mistakes *pipeline.Error
	printed := ""
	switch {
	case errors.As(err, &mistakes):
		got.Mistakes, got.More = fileMistakes(mistakes.Problems), mistakes.More
		printed = mistakes.Format(given, src)
	case err != nil:
		got.Mistakes = []fileMistake{{Message: err.Error()}}
		printed = text.Printable(err.Error()) + "\n"
	default:
		got.Name, got.Tasks = f.Name, len(f.Tasks)
		got.Warnings = append(fileMistakes(f.Warnings.Problems), variableWarnings(f)...)
	}
	switch {
	case s.json():
	case err != nil:
		fmt.Fprint(s.errs, printed)
	default:
		s.warn(f)
		for _, w := range got.Warnings[len(f.Warnings.Problems):] {
			fmt.Fprintf(s.errs, "%s: warning: %s\n", given, text.Printable(w.Message))
		}
		when := ""
		if f.Schedule != nil {
			when = ", " + f.Schedule.String()
		}
		s.printf("%s: %s, %s%s: no mistakes\n", given, f.Name, text.Plural(len(f.Tasks), "task"), when)
	}
	return got
}

// variableWarnings reports variable files that cannot be read, and variables that neither such a file nor this
// process's environment defines. A worker may have them.
func variableWarnings(f *pipelineFile) (warnings []fileMistake) {
	seen := make(map[string]bool) // nodes of one task, and tasks that share a file
	warn := func(task, format string, args ...any) {
		if message := fmt.Sprintf(format, args...); !seen[message] {
			seen[message] = true
			warnings = append(warnings, fileMistake{Message: fmt.Sprintf("task %q: %s", task, message)})
		}
	}
	for _, v := range f.Variables(filepath.Dir(f.path)) {
		unset, err := builtin.Unset(v.File, v.Names)
		if err != nil {
			warn(v.Task, "%v", err)
		}
		for _, name := range unset {
			warn(v.Task, "%s: the variable %s is neither in %s nor set here: it must be where the worker runs", v.Key, name, v.File)
		}
	}
	return warnings
}

func fileMistakes(problems []pipeline.Problem) []fileMistake {
	all := make([]fileMistake, 0, len(problems))
	for _, p := range problems {
		all = append(all, fileMistake{p.File, p.Line, p.Column, p.Length, p.Message, p.Hint})
	}
	return all
}
