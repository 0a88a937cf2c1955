package archtest_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// idioms are phrases that plain English has a shorter form for. STYLE of the project: name the
// thing instead of a clause about it. Each may occur idiomCap times in 1,000 lines of comments.
var idioms = map[string]*regexp.Regexp{
	"is what/how/when/where/who":   regexp.MustCompile(`(?i)\b(is|are|was|were) (what|how|when|where|why|whether|who|which|whose|for what|for how|in what)\b`),
	"what it/the/of":               regexp.MustCompile(`(?i)\bwhat (it|the|of|a|an|they|this|each|one|was|is|were|are|has|have|had|became|becomes|follows|would|no|its|their|every|all)\b|\bof what\b`),
	"none":                         regexp.MustCompile(`(?i)\bnone\b`),
	"how much/many/far/long/often": regexp.MustCompile(`(?i)\bhow (much|many|far|long|often|old|large|big)\b`),
	"beside":                       regexp.MustCompile(`(?i)\bbeside\b`),
}

const idiomCap = 5

// TestComments_Idioms caps the idioms over all comments of the repository.
func TestComments_Idioms(t *testing.T) {
	t.Parallel()
	lines := 0
	found := make(map[string][]string)
	for _, f := range goFiles(t) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				for _, line := range strings.Split(c.Text, "\n") {
					lines++
					for name, re := range idioms {
						for range re.FindAllString(line, -1) {
							found[name] = append(found[name], f.at(c))
						}
					}
				}
			}
		}
	}
	for name, places := range found {
		if len(places)*1000 > idiomCap*lines {
			t.Errorf("%q occurs %d times in %d lines of comments, the cap is %d per 1,000: name the thing instead of a clause about it; the last are %v",
				name, len(places), lines, idiomCap, places[max(0, len(places)-10):])
		}
	}
}

// isNo finds messages of the form `"x" is no duration`: say what was wrong with the value, then
// what would be right (`"x": not a duration; use 90s or 1h30m`).
var isNo = regexp.MustCompile(`\b(is|are) no ([a-z]+)`)

// TestMessages_IsNo refuses such messages.
func TestMessages_IsNo(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.isTest() || f.under(suites) {
			continue // names of cases
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if m := isNo.FindStringSubmatch(text); err == nil && m != nil && m[2] != "longer" && !thereIs.MatchString(text) {
				t.Errorf("%s: %s: say what is wrong with the value, then what to do", f.at(lit), lit.Value)
			}
			return true
		})
	}
}

// thereIs matches sentences in which "is no" is plain.
var thereIs = regexp.MustCompile(`(?i)there (is|are) no `)
