package pipeline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// variableUse matches variables as a shell expands them: $VAR, and ${VAR} with any
// operator. It matches lower-case names in braces only: $ref and $set are JSON
// keys, and a password may contain a $.
var variableUse = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)[^{}]*\}|\$([A-Z_][A-Z0-9_]*)\b`)

// interpreters read code, in which a $ has a meaning, from their arguments.
var interpreters = []string{
	"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "ssh", "awk", "gawk", "mawk", "nawk",
	"sed", "perl", "ruby", "php", "jq", "yq", "make", "envsubst", "expect", "pwsh",
}

// literal describes a place without variable expansion: the fate of a variable
// there, and a hint to a place with expansion.
type literal struct {
	fate string
	hint func(name string) string
}

var (
	literalEnv = literal{"is passed on as it is written", func(name string) string {
		return fmt.Sprintf(`write inherit_env: [%[1]s] to take the worker's variable over, or secret_env: [%[1]s] for a secret; or let the shell set it, in a text: run: export %[1]s="…$%[1]s"`, name)
	}}
	literalArgument = literal{"is passed on as it is written, because no shell reads a list", func(name string) string {
		return fmt.Sprintf(`write a text, which the shell runs: run: "… $%s"; it sees env, inherit_env and secret_env`, name)
	}}
	literalRequest = literal{"is sent as it is written", func(name string) string {
		return fmt.Sprintf(`let the shell make the call, as in run: curl "…$%[1]s", with inherit_env: [%[1]s], or secret_env: [%[1]s] for a secret; of a request only headers_env takes variables`, name)
	}}
	literalFile = literal{"is taken as it is written", func(string) string { return "write the path itself, from the directory of this file" }}
	literalPath = literal{"is taken as it is written", func(name string) string {
		return fmt.Sprintf(`write the path itself, or let the shell go there, in a text: run: cd "$%s/…" && …`, name)
	}}
)

// literalHeader is the place of a header's value. The hint keeps a scheme before
// the variable, such as Bearer.
func literalHeader(header, value string) literal {
	return literal{literalRequest.fate, func(name string) string {
		scheme, _, _ := strings.Cut(value, "$")
		if strings.TrimSpace(scheme) != "" && strings.HasSuffix(scheme, " ") && !strings.Contains(strings.TrimSpace(scheme), " ") {
			name = strings.TrimSpace(scheme) + " " + name
		}
		return fmt.Sprintf("write headers_env: {%s: %s}: the worker sends the value of its variable %s", header, name, name[strings.LastIndexByte(name, ' ')+1:])
	}}
}

// warnLiteral warns of the first variable in a text without expansion.
func (d *decoder) warnLiteral(n *node, of string, place literal) {
	if n.kind != scalar || !strings.Contains(n.text, "$") {
		return
	}
	found := variableUse.FindStringSubmatch(n.text)
	if found == nil {
		return
	}
	name := found[1] + found[2]
	d.warnings.addSuggesting(d.placeIn(n, found[0]), fmt.Sprintf("%s in %s %s", cut(found[0]), of, place.fate), func() string { return place.hint(name) })
}

// placeIn returns the place of a part of a text in the source, or the place of the
// text if it is written with escapes.
func (d *decoder) placeIn(n *node, part string) spot {
	end := min(len(d.r.src.text), n.at.from+2*len(n.text)+200)
	if n.at.from < end {
		if i := strings.Index(d.r.src.text[n.at.from:end], part); i >= 0 {
			return d.r.src.spot(n.at.from+i, n.at.from+i+len(part))
		}
	}
	return n.at
}

// warnLiterals applies warnLiteral to each entry of a mapping.
func (d *decoder) warnLiterals(f field, place func(e entry) literal) {
	for _, e := range f.value.entries {
		d.warnLiteral(e.value, field{e, f.label()}.label(), place(e))
	}
}

// warnTree applies warnLiteral to all texts of a value.
func (d *decoder) warnTree(n *node, of string, place literal) {
	for _, item := range n.items {
		d.warnTree(item, of, place)
	}
	for _, e := range n.entries {
		d.warnTree(e.value, of, place)
	}
	d.warnLiteral(n, of, place)
}

// warnArguments applies warnLiteral to the arguments of a command, up to the first
// interpreter.
func (d *decoder) warnArguments(f field) {
	for _, item := range f.value.items {
		if slices.Contains(interpreters, path.Base(item.text)) {
			return
		}
		d.warnLiteral(item, f.label(), literalArgument)
	}
}
