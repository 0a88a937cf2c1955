package builtin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/goweaver/weaver/internal/plainfile"
)

// maxEnvFile is the maximum size of a file of variables, in bytes.
const maxEnvFile = 1 << 20

// variable is an environment variable.
type variable struct{ name, value string }

// readEnvFile reads a file of NAME=VALUE lines. Its errors contain no values.
func readEnvFile(path string) ([]variable, error) {
	f, err := plainfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("env_file: there is no file %q on this worker: create it, or change env_file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("env_file: %w", err)
	}
	defer shut(f)
	raw, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("env_file: %w", err)
	case len(raw) > maxEnvFile:
		return nil, fmt.Errorf("env_file: %s is larger than %d bytes: keep other data in files of their own", path, maxEnvFile)
	}
	vars, err := parseEnv(string(raw))
	if err != nil {
		return nil, fmt.Errorf("env_file: %s, %w", path, err)
	}
	return vars, nil
}

// parseEnv parses lines of NAME=VALUE, with an optional "export" before; the last
// value of a name wins. A value in double quotes may use \n, \r, \t, \", \\ and
// \$; a value in single quotes is literal; both may span lines. An unquoted value
// ends before " #". Variables are not expanded: $VAR stays.
func parseEnv(text string) ([]variable, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	var vars []variable
	for number := 1; text != ""; {
		line, _, _ := strings.Cut(text, "\n")
		used := len(line)
		if trimmed := strings.TrimSpace(line); trimmed != "" && trimmed[0] != '#' {
			name, rest, found := strings.Cut(line, "=")
			name = strings.TrimLeft(name, " \t")
			if after, exported := strings.CutPrefix(name, "export "); exported {
				name = strings.TrimLeft(after, " \t")
			}
			switch {
			case !found:
				return nil, fmt.Errorf("line %d: no NAME=VALUE: write for example LANG=C, and # before a comment", number)
			case name == "" || strings.ContainsAny(name, " \t\x00\"'$"):
				return nil, fmt.Errorf("line %d: what stands before = cannot name a variable: write for example LANG=C, without spaces around =", number)
			}
			value, size, problem := envValue(text[len(line)-len(rest):])
			if problem == "" && strings.ContainsRune(value, 0) {
				problem = "a NUL character, which no command can be given"
			}
			if problem != "" {
				return nil, fmt.Errorf("line %d: the value of %s: %s", number, name, problem)
			}
			vars = append(vars, variable{name, value})
			used = len(line) - len(rest) + size
		}
		used = min(used+1, len(text)) // including the line break
		number += strings.Count(text[:used], "\n")
		text = text[used:]
	}
	return vars, nil
}

// envValue parses the value at the beginning of text and returns its size in
// bytes, up to the end of its last line.
func envValue(text string) (value string, size int, problem string) {
	start := len(text) - len(strings.TrimLeft(text, " \t"))
	lineEnd := func(from int) int {
		if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
			return from + i
		}
		return len(text)
	}
	if start == len(text) || text[start] != '"' && text[start] != '\'' {
		end := lineEnd(0)
		value = text[:end]
		for _, comment := range []string{" #", "\t#"} {
			value, _, _ = strings.Cut(value, comment)
		}
		return strings.TrimSpace(value), end, ""
	}
	value, closed := quoted(text[start:])
	if closed < 0 {
		return "", 0, "its quote " + text[start:start+1] + " is not closed: close it"
	}
	behind := start + closed
	end := lineEnd(behind)
	if rest := strings.TrimSpace(text[behind:end]); rest != "" && rest[0] != '#' {
		return "", 0, "something follows its closing quote: put all of it in quotes"
	}
	return value, end, ""
}

// quoted parses a quoted text and returns its end, or -1 without a closing quote.
func quoted(text string) (value string, end int) {
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return b.String(), i + 1
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			if at := strings.IndexByte(`nrt"\$`, text[i]); at >= 0 {
				b.WriteByte("\n\r\t\"\\$"[at])
			} else {
				b.WriteString(text[i-1 : i+1])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", -1
}
