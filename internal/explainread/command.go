package explainread

import (
	"strings"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/text"
)

// Command writes command lines of a program, weaver, for people of whose stores nothing
// is known: they have the namespace, unless it is the default one. It is
// explain.Explainer.Command.
func Command(program, namespace string) func(args ...string) string {
	return func(args ...string) string {
		words := []string{program}
		if namespace != weaver.DefaultNamespace {
			words = append(words, "--namespace", text.ShellWord(namespace))
		}
		for _, a := range args {
			words = append(words, text.ShellWord(a))
		}
		return strings.Join(words, " ")
	}
}
