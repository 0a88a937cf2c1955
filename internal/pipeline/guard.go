package pipeline

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// Limits of what is handed to the parser, whose time and memory grow with the
// square of each of these. They are far above what files of MaxTasks tasks
// need.
const (
	maxDepth    = 64
	maxSiblings = 100_000_000 // sum over all mappings of half the square of their keys: 14,000 keys in one
	maxNulls    = 300_000_000 // sum of what follows each key or list entry without a value, in tokens
	maxPaths    = 100_000_000 // sum of the lengths of the paths to all nodes: the parser keeps each
)

// block is an open list or mapping.
type block struct {
	column  int // 0: in brackets
	list    bool
	entries int
	path    int // length of the key that is read
}

// guard reads the tokens before the parser does. It reports what the parser
// cannot take in reasonable time or memory, and parts of YAML that have no
// use in a pipeline and would be traps: tags, directives, keys after "?".
type guard struct {
	src    *source
	r      *reporter
	tokens token.Tokens // without comments
	i      int

	open []block
	flow int // how many of open are in brackets
	path int // sum over open
	line int // of the token before

	siblings, nulls, paths int
	document, ended        bool
}

// pass returns the tokens for the parser. When a problem is reported it must
// not have them.
func (g *guard) pass(all token.Tokens) token.Tokens {
	for _, tok := range all {
		if tok.Type != token.CommentType {
			g.tokens = append(g.tokens, tok)
		}
	}
	for g.i = range g.tokens {
		if !g.token(g.tokens[g.i]) {
			return nil
		}
	}
	return g.tokens
}

func (g *guard) peek(n int) *token.Token {
	if j := g.i + n; j >= 0 && j < len(g.tokens) {
		return g.tokens[j]
	}
	return &token.Token{Position: &token.Position{}}
}

func (g *guard) problem(tok *token.Token, message, hint string) bool {
	g.r.add(g.src.token(tok), message, hint)
	return false
}

// token returns false when there is no use in reading on.
func (g *guard) token(tok *token.Token) bool {
	first := tok.Position.Line != g.line
	g.line = tok.Position.Line
	if g.flow == 0 && (first || tok.Type == token.SequenceEntryType || g.peek(1).Type == token.MappingValueType) && !g.indent(tok) {
		return false
	}
	if g.ended && tok.Type != token.DocumentEndType {
		return g.problem(tok, "a second document begins here", "keep one pipeline in a file")
	}
	g.paths += g.path
	switch tok.Type {
	case token.InvalidType:
		message, hint := translate(tok.Error, !first && ends(g.peek(-1).Type))
		return g.problem(tok, message, hint)
	case token.DocumentHeaderType:
		if g.document || g.i > 0 {
			return g.problem(tok, "a second document begins here", "keep one pipeline in a file")
		}
		g.document = true
	case token.DocumentEndType:
		g.ended = true
	case token.DirectiveType:
		if !first {
			return g.problem(tok, "a text cannot begin with this character", "put the text in quotes")
		}
		return g.problem(tok, "a directive, which a pipeline does not need", "remove the line")
	case token.TagType:
		return g.problem(tok, quote(tok.Value)+" is a tag, and a pipeline has none", "remove it; a text that begins with ! needs quotes")
	case token.MappingKeyType:
		return g.problem(tok, `a key after "?"`, "write key: value; a text that begins with ? needs quotes")
	case token.AnchorType:
		return g.anchor(tok)
	case token.AliasType:
		if g.peek(2).Type == token.MappingValueType {
			return g.problem(tok, "an alias as a key", "write the key itself; a text that begins with * needs quotes")
		}
	}
	g.nest(tok)
	switch {
	case len(g.open) > maxDepth:
		return g.problem(tok, fmt.Sprintf("nested deeper than %d levels", maxDepth), "keep such data in a file of its own")
	case g.siblings > maxSiblings:
		return g.problem(tok, "more keys in one mapping than can be read", "keep such data in a file of its own")
	case g.nulls > maxNulls:
		return g.problem(tok, "too many keys and list entries without a value", "keep such data in a file of its own")
	case g.paths > maxPaths:
		return g.problem(tok, "too many keys below long keys", "keep such data in a file of its own")
	}
	return true
}

// indent refuses a tab before a token that begins a line, a key or an entry:
// how far it indents is anybody's guess, the parser's too.
func (g *guard) indent(tok *token.Token) bool {
	at := g.src.token(tok)
	start := g.src.starts[at.line-1]
	tab := strings.IndexByte(g.src.text[start:at.from], '\t')
	if tab < 0 {
		return true
	}
	g.r.add(g.src.at(start+tab, start+tab+1), "a tab indents this line", "indent with spaces")
	return tok.Type != token.InvalidType
}

func (g *guard) anchor(tok *token.Token) bool {
	const hint = "write it on the line before, after the colon or dash: - &name"
	switch after := g.peek(2); {
	case after.Type == token.AnchorType:
		return g.problem(tok, "two anchors for one value", "keep one of them")
	case after.Position.Line != g.line, after.Type == token.MappingStartType, after.Type == token.SequenceStartType:
	case g.peek(3).Type == token.MappingValueType:
		return g.problem(tok, "an anchor before a key would name the key, not the mapping", hint)
	}
	return true
}

// nest follows lists and mappings as they open and close.
func (g *guard) nest(tok *token.Token) {
	column := tok.Position.Column
	switch tok.Type {
	case token.MappingStartType, token.SequenceStartType:
		g.push(block{list: tok.Type == token.SequenceStartType})
		g.flow++
		return
	case token.MappingEndType, token.SequenceEndType:
		for g.flow > 0 {
			if g.pop().column == 0 {
				g.flow--
				break
			}
		}
		return
	case token.CollectEntryType:
		if g.flow > 0 {
			g.setPath(8) // an index
		}
	case token.SequenceEntryType:
		if g.flow == 0 {
			g.enter(block{column: column, list: true})
			g.setPath(8)
		}
		if next := g.peek(1); next.Position.Line != g.line && next.Position.Column <= column {
			g.null()
		}
		return
	case token.MappingValueType:
		if next := g.peek(1); flowEnd(next.Type) || next.Position.Line != g.line && g.flow == 0 && next.Position.Column <= g.top().column && next.Type != token.SequenceEntryType {
			g.null()
		}
		return
	}
	switch {
	case g.peek(1).Type == token.MappingValueType:
		if g.flow == 0 {
			g.enter(block{column: column})
		}
		g.setPath(len(tok.Value) + 1)
	case g.flow > 0 && !g.top().list && flowEnd(g.peek(1).Type) && (g.peek(-1).Type == token.CollectEntryType || g.peek(-1).Type == token.MappingStartType):
		g.null() // {a, b}
	}
}

// ends reports what a value cannot go on after.
func ends(t token.Type) bool {
	return t == token.MappingEndType || t == token.SequenceEndType || t == token.DoubleQuoteType || t == token.SingleQuoteType
}

func flowEnd(t token.Type) bool {
	return t == token.CollectEntryType || t == token.MappingEndType || t == token.SequenceEndType
}

func (g *guard) null() { g.nulls += len(g.tokens) - g.i }

// enter goes to the entry of a block list or mapping at a column.
func (g *guard) enter(b block) {
	for len(g.open) > 0 {
		top := g.open[len(g.open)-1]
		// A list may stand at the column of the key that it belongs to.
		if top.column < b.column || top.column == b.column && (top.list == b.list || b.list) {
			break
		}
		g.pop()
	}
	if len(g.open) == 0 || g.top().column != b.column || g.top().list != b.list {
		g.push(b)
		return
	}
	top := &g.open[len(g.open)-1]
	if top.entries++; !b.list {
		g.siblings += top.entries
	}
}

func (g *guard) top() block {
	if len(g.open) == 0 {
		return block{}
	}
	return g.open[len(g.open)-1]
}

func (g *guard) push(b block) { g.open = append(g.open, b) }

func (g *guard) pop() block {
	b := g.top()
	g.open = g.open[:len(g.open)-1]
	g.path -= b.path
	return b
}

func (g *guard) setPath(n int) {
	if len(g.open) == 0 {
		return
	}
	top := &g.open[len(g.open)-1]
	g.path += n - top.path
	top.path = n
}
