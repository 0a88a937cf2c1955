package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goweaver/weaver/internal/text"
)

// failure is the JSON form of an error, printed on the standard error with -o json.
type failure struct {
	Error    string        `json:"error"`
	Advice   string        `json:"advice,omitempty"`
	ExitCode int           `json:"exit_code"`
	File     string        `json:"file,omitempty"`     // a pipeline file with mistakes
	Mistakes []fileMistake `json:"mistakes,omitempty"` // the first mistakes of the file
	More     int           `json:"more,omitempty"`     // number of further mistakes
}

// reportJSON is report for -o json.
func reportJSON(w io.Writer, app App, err error) int {
	code := exitCode(err)
	if err == nil || errors.Is(err, errSilent) {
		return code
	}
	f := failure{Error: err.Error(), ExitCode: code}
	f.Advice = advice(func(args ...string) string { return strings.Join(append([]string{app.Name}, args...), " ") }, err)
	if file := (*mistakenFile)(nil); errors.As(err, &file) {
		f.Mistakes, f.More, f.File = fileMistakes(file.mistakes.Problems), file.mistakes.More, file.file
		f.Error = fmt.Sprintf("%s has %s", file.file, text.Plural(len(f.Mistakes)+f.More, "mistake"))
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(f) // only strings and numbers: Encode cannot fail
	fmt.Fprint(w, text.PlainJSON(b.String()))
	return code
}

// asksForJSON reports whether the arguments contain -o json, even if they are not a valid command line.
func asksForJSON(args []string) bool {
	asked := false
	for i, arg := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return asked
		case (name == "--output" || name == "-o") && joined:
			asked = value == "json"
		case arg == "--output" || arg == "-o":
			asked = next == "json"
		case strings.HasPrefix(arg, "-o") && !strings.HasPrefix(arg, "--"):
			asked = arg == "-ojson"
		}
	}
	return asked
}
