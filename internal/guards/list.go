package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// guard is one entry of the lists: a guard of the law, how to take it out,
// and the test that must then fail.
type guard struct {
	name  string
	laws  []string // the rules it upholds, as in "R2" or "§4"
	file  string   // from the root of the module
	hunks []hunk
	why   string // what would go wrong without it

	dies  test          // what must fail without it
	hangs time.Duration // a test that has not ended by then has failed; 0: it has to fail
	spare string        // instead of dies: why nothing can fail without it

	at string // list:line, for messages
}

// hunk is one replacement in the file.
type hunk struct {
	in       string // the declaration that it is in, as in "claim.serves"; "": anywhere
	old, new string
}

// test is what `go test` is asked to run.
type test struct {
	pkg string // folder, from the root of the module; "." is the root
	run string // as for -run
}

func (t test) String() string { return t.pkg + " " + t.run }

// readLists reads every list of a folder, in the order of their names.
func readLists(fsys fs.FS, dir string) ([]guard, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("find the lists: %w", err)
	}
	var all []guard
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read a list: %w", err)
		}
		list, err := parseList(path.Base(name), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// parseList reads one list: paragraphs, of which a "file" alone holds for all
// that follow, a "#" begins a remark, and every other is a guard.
func parseList(name, text string) ([]guard, error) {
	var list []guard
	file := ""
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			i++
			continue
		}
		end := i
		for end < len(lines) && lines[end] != "" {
			end++
		}
		g := guard{file: file, at: fmt.Sprintf("%s:%d", name, i+1)}
		for ; i < end; i++ {
			if err := g.line(lines[i]); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
		}
		switch missing := g.missing(); {
		case g.name == "" && len(g.hunks) == 0:
			file = g.file
		case missing != "":
			return nil, fmt.Errorf("%s: guard %q has no %s", g.at, g.name, missing)
		default:
			list = append(list, g)
		}
	}
	return list, nil
}

// line adds one line of a paragraph.
func (g *guard) line(line string) error {
	if in, ok := strings.CutPrefix(line, "@@"); ok {
		g.hunks = append(g.hunks, hunk{in: strings.TrimSpace(in)})
		return nil
	}
	if strings.ContainsRune("-+ ", rune(line[0])) {
		if len(g.hunks) == 0 {
			return fmt.Errorf("a change without an @@ line before it: %q", line)
		}
		h := &g.hunks[len(g.hunks)-1]
		if line[0] != '+' {
			h.old += line[1:] + "\n"
		}
		if line[0] != '-' {
			h.new += line[1:] + "\n"
		}
		return nil
	}
	key, value, _ := strings.Cut(line, " ")
	value = strings.TrimSpace(value)
	switch key {
	case "guard":
		g.name = value
	case "law":
		g.laws = strings.Fields(value)
	case "file":
		g.file = value
	case "why":
		g.why = value
	case "dies":
		g.dies.pkg, g.dies.run, _ = strings.Cut(value, " ")
	case "hangs":
		var err error
		if g.hangs, err = time.ParseDuration(value); err != nil || g.hangs <= 0 {
			return fmt.Errorf("hangs %q: want how long to wait for the test, as in 10s", value)
		}
	case "spare":
		g.spare = value
	default:
		return fmt.Errorf("unknown key %q: want guard, law, file, why, dies, hangs or spare, or a change that begins with -, + or a space", key)
	}
	return nil
}

// missing names what the guard lacks, "" when it is whole.
func (g *guard) missing() string {
	empty := func(h hunk) bool { return strings.TrimSpace(h.old) == "" || h.old == h.new }
	switch {
	case g.name == "":
		return "name"
	case len(g.laws) == 0:
		return "law"
	case g.file == "":
		return "file"
	case g.why == "":
		return "why"
	case len(g.hunks) == 0 || slices.ContainsFunc(g.hunks, empty):
		return "change"
	case (g.dies.run == "") == (g.spare == ""):
		return "one of dies and spare"
	}
	return ""
}
