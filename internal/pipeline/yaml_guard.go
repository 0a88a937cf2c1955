package pipeline

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// Limits on the input of the parser of goccy/go-yaml v1.19.2. Its time and memory
// grow with the square of each: a file of [MaxSize] could run for minutes or
// exhaust the stack. Files of MaxTasks tasks stay far below them.
const (
	maxDepth    = 64
	maxSiblings = 100_000_000 // sum over all mappings of half the square of their keys: 14,000 keys in one
	maxNulls    = 300_000_000 // sum of the tokens after each key or list entry without a value: the parser inserts a token there
	maxPaths    = 100_000_000 // sum of the lengths of the paths to all nodes: the parser stores each
)

// guard examines the tokens before the parser. It reports input that would take
// the parser too much time or memory. It also reports YAML that a pipeline does
// not use: tags, directives, keys after "?", several documents. A text that begins
// with such a character is probably meant as a text.
type guard struct {
	src    *source
	r      *reporter
	tokens token.Tokens
	i      int

	open                   []collection // collections around the token; the first is the file
	path                   int          // sum of key over open
	siblings, nulls, paths int          // see the limits
}

// collection is an open list or mapping: flow style in brackets, otherwise block
// style.
type collection struct {
	flow, list bool
	column     int // of the keys or dashes of a block
	entries    int
	key        int // length of the current key or index in a path
}

// check reports input that the parser must not get, and then returns false.
func (g *guard) check() bool {
	g.open = []collection{{column: -1}}
	for g.i = range g.tokens {
		if !g.token(g.tokens[g.i]) {
			break
		}
	}
	return len(g.r.all) == 0
}

// peek returns the token at a distance of n, or an empty token.
func (g *guard) peek(n int) *token.Token {
	if j := g.i + n; j >= 0 && j < len(g.tokens) {
		return g.tokens[j]
	}
	return &token.Token{Position: &token.Position{}}
}

// token checks the token at i. It returns false if the tokens after it must not be
// checked.
func (g *guard) token(tok *token.Token) bool {
	first := tok.Position.Line != g.peek(-1).Position.Line
	key := g.peek(1).Type == token.MappingValueType
	if !g.top().flow && (first || key || tok.Type == token.SequenceEntryType) && !g.indent(tok) {
		return false
	}
	if message, hint := g.refuse(tok, first); message != "" {
		return g.r.add(g.src.token(tok), message, hint)
	}
	g.paths += g.path
	g.nest(tok, key)
	message := ""
	switch {
	case len(g.open)-1 > maxDepth:
		message = fmt.Sprintf("nested deeper than %d levels", maxDepth)
	case g.siblings > maxSiblings:
		message = "more keys in one mapping than can be read"
	case g.nulls > maxNulls:
		message = "too many keys and list entries without a value"
	case g.paths > maxPaths:
		message = "too many keys below long keys"
	default:
		return true
	}
	return g.r.add(g.src.token(tok), message, "keep such data in a file of its own")
}

// indent reports a tab before the first token of a line, a key or an entry: YAML
// readers disagree about its width.
func (g *guard) indent(tok *token.Token) bool {
	at := g.src.token(tok)
	start := g.src.starts[at.line-1]
	tab := strings.IndexByte(g.src.text[start:at.from], '\t')
	if tab < 0 {
		return true
	}
	g.r.add(g.src.spot(start+tab, start+tab+1), "a tab indents this line", "indent with spaces")
	return tok.Type != token.InvalidType
}

// refuse returns the problem with an invalid or unused token, or "". first reports
// that the token is the first of a line.
func (g *guard) refuse(tok *token.Token, first bool) (message, hint string) {
	switch before := g.peek(-1).Type; {
	case before == token.DocumentEndType && tok.Type != token.DocumentEndType, tok.Type == token.DocumentHeaderType && g.i > 0:
		return "a second document begins here", "keep one pipeline in a file"
	case tok.Type == token.InvalidType:
		ended := before == token.MappingEndType || before == token.SequenceEndType || before == token.DoubleQuoteType || before == token.SingleQuoteType
		return translate(tok.Error, !first && ended)
	case tok.Type == token.DirectiveType && first:
		return "a directive, which a pipeline does not need", "remove the line"
	case tok.Type == token.DirectiveType:
		return "a text cannot begin with this character", "put the text in quotes"
	case tok.Type == token.TagType:
		return quote(tok.Value) + " is a tag, and a pipeline has none", "remove it; a text that begins with ! needs quotes"
	case tok.Type == token.MappingKeyType:
		return `a key after "?"`, "write key: value; a text that begins with ? needs quotes"
	case tok.Type == token.AliasType && g.peek(2).Type == token.MappingValueType:
		return "an alias as a key", "write the key itself; a text that begins with * needs quotes"
	case tok.Type == token.AnchorType && g.peek(2).Type == token.AnchorType:
		return "two anchors for one value", "keep one of them"
	case tok.Type == token.AnchorType && g.peek(2).Position.Line == tok.Position.Line && !opens(g.peek(2)) && g.peek(3).Type == token.MappingValueType:
		return "an anchor before a key would name the key, not the mapping", "write it on the line before, after the colon or dash: - &name"
	}
	return "", ""
}

func opens(tok *token.Token) bool {
	return tok.Type == token.MappingStartType || tok.Type == token.SequenceStartType
}

// closes reports whether a flow entry ends before a token.
func closes(tok *token.Token) bool {
	return tok.Type == token.CollectEntryType || tok.Type == token.MappingEndType || tok.Type == token.SequenceEndType
}

// nest opens and closes collections and counts toward the limits. key reports that
// the token is a key.
func (g *guard) nest(tok *token.Token, key bool) {
	const index = 8 // length of an index in a path
	before, next, flow := g.peek(-1).Type, g.peek(1), g.top().flow
	line, column := tok.Position.Line, tok.Position.Column
	null := false
	switch {
	case opens(tok):
		g.open = append(g.open, collection{flow: true, list: tok.Type == token.SequenceStartType})
	case tok.Type == token.MappingEndType, tok.Type == token.SequenceEndType:
		if flow {
			g.leave()
		}
	case tok.Type == token.CollectEntryType:
		if flow {
			g.setKey(index)
		}
	case tok.Type == token.SequenceEntryType:
		if !flow {
			g.enter(column, true)
			g.setKey(index)
		}
		null = next.Position.Line != line && next.Position.Column <= column
	case tok.Type == token.MappingValueType:
		below := next.Position.Column > g.top().column || next.Type == token.SequenceEntryType
		null = closes(next) || !flow && next.Position.Line != line && !below
	case key:
		if !flow {
			g.enter(column, false)
		}
		g.setKey(len(tok.Value) + 1)
	case flow && !g.top().list:
		null = closes(next) && (before == token.CollectEntryType || before == token.MappingStartType) // {a, b}
	}
	if null {
		g.nulls += len(g.tokens) - g.i
	}
}

func (g *guard) top() *collection { return &g.open[len(g.open)-1] }

// enter goes to the next entry of the block list or mapping at a column.
func (g *guard) enter(column int, list bool) {
	// A list may have the column of its key.
	for g.top().column > column || g.top().column == column && g.top().list && !list {
		g.leave()
	}
	if top := g.top(); top.column != column || top.list != list {
		g.open = append(g.open, collection{list: list, column: column})
	} else if top.entries++; !list {
		g.siblings += top.entries
	}
}

func (g *guard) leave() {
	g.setKey(0)
	g.open = g.open[:len(g.open)-1]
}

// setKey sets the last element of the path.
func (g *guard) setKey(length int) {
	g.path += length - g.top().key
	g.top().key = length
}
