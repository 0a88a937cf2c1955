package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goweaver/weaver/internal/text"
)

// completionCmd is the verb completion.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" name:"shell" help:"bash, zsh or fish."`
}

// Help is shown by completion --help.
func (completionCmd) Help() string {
	return "bash: source <(weaver completion bash) in ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after compinit. fish: weaver " +
		"completion fish >~/.config/fish/completions/weaver.fish. The script asks this program, so it stays correct after an update."
}

// Run implements the verb.
func (c *completionCmd) Run(s *session) error {
	// A character that is special to the shell would make the name another command.
	function := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s.app.Name)
	s.printf("%s", strings.NewReplacer("PROGRAM", quote(s.app.Name), "FUNCTION", "_"+function+"_complete").Replace(completionScripts[c.Shell]))
	return nil
}

// completionScripts ask the program for completions, one per line: a word, a tab and its description. Without a
// completion the shell completes file names.
var completionScripts = map[string]string{
	"bash": `FUNCTION() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <("$1" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F FUNCTION PROGRAM
`,
	"zsh": `#compdef PROGRAM
FUNCTION() {
    local line word
    local -a found
    while IFS= read -r line; do
        word="${line%%$'\t'*}"
        found+=("${word//:/\\:}:${line#*$'\t'}")
    done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then
        _describe 'word' found
    else
        _files
    fi
}
compdef FUNCTION PROGRAM
`,
	"fish": `function FUNCTION
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    $program __complete -- $words "$last" 2>/dev/null
end
complete -c PROGRAM -n 'test (count (FUNCTION)) -gt 0' -f -a '(FUNCTION)'
`,
}

// completeCmd is the verb that the scripts call with the words of the command line, without the program's name. The
// last word may be incomplete.
type completeCmd struct {
	Words []string `arg:"" optional:"" name:"word"`
}

// Run implements the verb.
func (c *completeCmd) Run(s *session) error {
	parser, err := newParser(s.app, new(grammar), s.out)
	if err != nil {
		return err
	}
	for _, w := range completeWords(parser.Model.Node, c.Words) {
		s.printf("%s\t%s\n", w.word, text.OneLine(w.help, 80))
	}
	return nil
}

// completion is a candidate for the last word of a command line.
type completion struct{ word, help string }

// completeWords returns the candidates for the last word: commands, flags, and values from a fixed set. It returns no
// candidate for a free value, such as a file.
func completeWords(node *kong.Node, words []string) []completion {
	if len(words) == 0 {
		words = []string{""}
	}
	l := line{node: node}
	for _, w := range words[:len(words)-1] {
		l.read(w)
	}
	last := words[len(words)-1]
	var found []completion
	switch flag, value, given := strings.Cut(last, "="); {
	case l.flag != nil:
		last = strings.TrimPrefix(last, "=") // bash splits --flag=value into three words
		found = values(l.flag.Value, "")
		if l.flag.Name == "param" {
			found = paramWords(words)
		}
	case given && strings.HasPrefix(flag, "-") && !l.argsOnly:
		if f := l.flagNamed(flag); f != nil && value == strings.TrimPrefix(last, flag+"=") {
			found = values(f.Value, flag+"=")
		}
	case strings.HasPrefix(last, "-") && !l.argsOnly:
		found = l.flags()
	case len(l.node.Children) > 0 && l.args > 0: // an unknown command
	case len(l.node.Children) > 0:
		found = l.commands()
	default:
		if args := l.node.Positional; len(args) > 0 {
			found = values(args[min(l.args, len(args)-1)], "")
		}
	}
	return slices.DeleteFunc(found, func(c completion) bool { return !strings.HasPrefix(c.word, last) })
}

// line is the parsed form of the words before the last one.
type line struct {
	node     *kong.Node // the command
	args     int        // number of its arguments so far
	flag     *kong.Flag // a flag that lacks its value
	argsOnly bool       // after --
}

func (l *line) read(word string) {
	switch {
	case l.flag != nil:
		if word != "=" {
			l.flag = nil
		}
	case l.argsOnly:
		l.args++
	case word == "--":
		l.argsOnly = true
	case len(word) > 1 && word[0] == '-':
		if f := l.flagNamed(word); f != nil && !f.IsBool() {
			l.flag = f
		}
	default:
		for _, c := range l.node.Children {
			// The argument of help stands where commands do.
			if c.Name == word && word != "help" {
				l.node = c
				return
			}
		}
		if l.node.Parent == nil && word == "help" {
			return
		}
		l.args++
	}
}

// flagNamed finds a flag by its command-line form, without a value.
func (l *line) flagNamed(word string) *kong.Flag {
	for _, group := range l.node.AllFlags(false) {
		for _, f := range group {
			if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func (l *line) flags() []completion {
	var found []completion
	for _, group := range l.node.AllFlags(true) {
		for _, f := range group {
			found = append(found, completion{"--" + f.Name, f.Help})
		}
	}
	return found
}

func (l *line) commands() []completion {
	var found []completion
	for _, c := range l.node.Children {
		if !c.Hidden {
			found = append(found, completion{c.Name, c.Help})
		}
	}
	return found
}

// values returns the values of a flag or argument, from its tags enum and complete.
func values(v *kong.Value, prefix string) []completion {
	list := v.Enum
	if list == "" {
		list = v.Tag.Get("complete")
	}
	if list == "" {
		return nil
	}
	var found []completion
	for _, word := range strings.Split(list, ",") {
		found = append(found, completion{prefix + word, fmt.Sprintf("value of %s", v.Name)})
	}
	return found
}
