package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// guard is an entry of a list: a condition or statement that upholds a rule, and
// the change that removes it.
type guard struct {
	line  int
	rules []string // as in "R2" or "§4"; the proof in proofs.txt
	name  string
	why   string // the failure without the guard
	edits []edit
	tests []string // packages of which at least one test must fail
	run   string   // pattern of the tests to run; "": all
}

// edit replaces a piece of one declaration.
type edit struct {
	anchor   string // a package, a declaration of one, or an SQL file
	old, new string
}

// The rules of docs/leases.md that an entry may name. NS is namespaces, SC is
// schedules (ADR 0071), IK is idempotency keys, L9 is the minimum schema version, B a
// bucket, and I1 to I12 are the invariants.
var ruleName = regexp.MustCompile(`^(R([1-9]|1[0-8])|W[1-6]|§[346]|NS|SC|IK|L9|B|I([1-9]|1[0-2]|15))$`)

// proofName matches the first word of an entry of proofs.txt: a row of the table
// in docs/reliability.md.
var proofName = regexp.MustCompile(`^[a-z][a-z-]*$`)

// parseList parses entries whose labels match a pattern, ruleName or proofName. An
// entry is a paragraph:
//
//	R8 R2 finish.epoch: a holder of an earlier lease could end the task
//	@ store/sqlite.sqlGuard
//	- AND lease_epoch = ?3
//	+ AND (lease_epoch = ?3 OR 1=1)
//	tests store/sqlite .
//	run TestConformance/Finish
//
// A paragraph has one or more edits. An edit without a + line removes the text;
// consecutive lines belong together. Without a tests line, the tests of the first
// anchor's package run (of store/sqlite for SQL verbs). A run line selects tests,
// because all tests of a package may take too long. A line that begins with # is a
// remark.
func parseList(text string, label *regexp.Regexp) ([]guard, error) {
	var list []guard
	var g *guard
	anchor, last := "", ""
	for i, line := range strings.Split(text, "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
			g, anchor = nil, ""
			continue
		case strings.HasPrefix(line, "#"):
			continue
		case g == nil:
			list = append(list, guard{line: i + 1})
			g = &list[len(list)-1]
			if err := g.head(line, label); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		case mark == "@":
			anchor = rest
		case (mark == "-" || mark == "+") && anchor == "":
			return nil, fmt.Errorf("line %d: no @ line before it says where the change is", i+1)
		case mark == "-" && last != "-":
			g.edits = append(g.edits, edit{anchor: anchor, old: rest})
		case mark == "-":
			g.edits[len(g.edits)-1].old += "\n" + rest
		case mark == "+" && (last == "-" || last == "+"):
			e := &g.edits[len(g.edits)-1]
			e.new = strings.TrimPrefix(e.new+"\n"+rest, "\n")
		case mark == "tests":
			g.tests = strings.Fields(rest)
		case mark == "run":
			g.run = rest
		default:
			return nil, fmt.Errorf("line %d: want @, -, +, tests or run, not %q", i+1, line)
		}
		last = mark
	}
	for i := range list {
		if g := &list[i]; len(g.edits) == 0 || slices.ContainsFunc(g.edits, func(e edit) bool { return strings.TrimSpace(e.old) == "" }) {
			return nil, fmt.Errorf("line %d: guard %s has no change", g.line, g.name)
		} else if len(g.tests) == 0 {
			pkg, _ := splitAnchor(g.edits[0].anchor)
			if pkg == "internal/sqlstore" { // the stores test it
				pkg = "store/sqlite"
			}
			g.tests = []string{pkg}
		}
	}
	return list, nil
}

// head parses the first line: labels, name, and the failure without the guard.
func (g *guard) head(line string, label *regexp.Regexp) error {
	before, why, ok := strings.Cut(line, ": ")
	words := strings.Fields(before)
	if !ok || len(words) < 2 {
		return fmt.Errorf("want LABELS NAME: WHY, not %q", line)
	}
	g.rules, g.name, g.why = words[:len(words)-1], words[len(words)-1], why
	for _, r := range g.rules {
		if !label.MatchString(r) {
			return fmt.Errorf("%s does not match %s", r, label)
		}
	}
	return nil
}
