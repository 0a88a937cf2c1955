package pipeline

import (
	"fmt"
	"regexp"
	"strings"
)

// ourValues is a value of ours in a text for the shell. Other texts in braces
// belong to the programs that the shell runs.
var ourValues = regexp.MustCompile(`\{\{-?\s*\.(item|params|matrix|tasks)\b[^{}]*\}\}`)

// shellTemplates refuses values in a text that a shell runs: a value with quotes
// or spaces in it would be code there.
func (d *decoder) shellTemplates(f field) {
	for _, m := range ourValues.FindAllString(f.value.text, -1) {
		steps := strings.FieldsFunc(strings.Trim(m, "{}- "), func(r rune) bool { return strings.ContainsRune(`.["]`, r) })
		name := "FILE"
		if len(steps) > 1 {
			name = strings.ToUpper(strings.ReplaceAll(steps[1], "-", "_"))
		}
		d.r.add(d.placeIn(f.value, m), fmt.Sprintf("%s in %s would be read as code by the shell", cut(m), f.label()),
			fmt.Sprintf(`give it to the command in its environment: env: {%s: "%s"}, and write "$%[1]s" here; or write a list: run: [program, "%[2]s"]`, name, strings.ReplaceAll(m, `"`, `\"`)))
	}
}
