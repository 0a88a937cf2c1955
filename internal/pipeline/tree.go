package pipeline

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// What a value counts for, beside the bytes of its texts, and how much aliases
// may add to what is written: enough for the defaults of MaxTasks tasks.
const (
	nodeSize    = 16
	maxExpanded = 8 << 20
)

type kind int

const (
	nothing kind = iota
	scalar
	list
	mapping
)

// node is a value of the file. An alias is the same node once more, so a tree
// is really a graph without cycles.
type node struct {
	kind    kind
	text    string // of a scalar, as written
	plain   bool   // a scalar without quotes: may stand for a number, true or null
	items   []*node
	entries []entry
	twice   []twice
	size    int // when aliases are written out
	at      spot
}

// entry is a key of a mapping with its value.
type entry struct {
	name  string
	at    spot // of the key
	value *node
}

// twice is a key that a mapping has already.
type twice struct {
	name      string
	at, first spot
}

// spot is the place for a complaint of a value: of its key, when the value
// begins further down.
func (e entry) spot() spot {
	if e.at.line != e.value.at.line {
		return e.at
	}
	return e.value.at
}

func (n *node) get(name string) (entry, bool) {
	for _, e := range n.entries {
		if e.name == name {
			return e, true
		}
	}
	return entry{}, false
}

// builder makes nodes of the parser's, and resolves aliases and merge keys.
type builder struct {
	r        *reporter
	anchors  map[string]*node // nil: the anchor is being read
	expanded int
}

// build never returns nil. depth counts levels.
func (b *builder) build(n ast.Node, depth int) *node {
	if depth > 4*maxDepth { // guard has counted them too: this is for what it missed
		b.r.add(b.r.src.token(n.GetToken()), "nested too deep", "keep such data in a file of its own")
		return &node{at: b.r.src.token(n.GetToken())}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return b.mapping(n.Start, n.End, n.Values, depth)
	case *ast.MappingValueNode:
		return b.mapping(n.Key.GetToken(), nil, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		s := &node{kind: list, size: nodeSize, at: b.bracket(n.Start, n.End)}
		for _, v := range n.Values {
			item := b.build(v, depth+1)
			s.items = append(s.items, item)
			s.size += item.size
		}
		return s
	case *ast.AnchorNode:
		name := n.Name.GetToken().Value
		b.anchors[name] = nil
		v := b.build(n.Value, depth+1)
		b.anchors[name] = v
		return v
	case *ast.AliasNode:
		return b.alias(n)
	case *ast.LiteralNode:
		return &node{kind: scalar, text: n.Value.Value, size: nodeSize + len(n.Value.Value), at: b.r.src.token(n.Start)}
	case *ast.NullNode:
		return &node{plain: true, size: nodeSize, at: b.r.src.token(n.Token)}
	case ast.ScalarNode:
		tok := n.GetToken()
		quoted := tok.Type == token.DoubleQuoteType || tok.Type == token.SingleQuoteType
		return &node{kind: scalar, text: tok.Value, plain: !quoted, size: nodeSize + len(tok.Value), at: b.r.src.token(tok)}
	}
	at := b.r.src.whole()
	if tok := n.GetToken(); tok != nil {
		at = b.r.src.token(tok)
	}
	b.r.add(at, "this has no use in a pipeline", "write a text, a list or a mapping")
	return &node{at: at}
}

// bracket is the spot from [ or { to its partner, if there is one.
func (b *builder) bracket(start, end *token.Token) spot {
	at := b.r.src.token(start)
	if end != nil && end.Position.Offset > at.from {
		at.to = end.Position.Offset + 1
	}
	return at
}

func (b *builder) mapping(start, end *token.Token, values []*ast.MappingValueNode, depth int) *node {
	m := &node{kind: mapping, size: nodeSize}
	if start.Type == token.MappingStartType {
		m.at = b.bracket(start, end)
	} else if len(values) > 0 {
		m.at = b.r.src.token(values[0].Key.GetToken())
	}
	seen := make(map[string]spot, len(values))
	var merges []entry
	for _, v := range values {
		at := b.r.src.token(v.Key.GetToken())
		value := b.build(v.Value, depth+1)
		if value.kind == nothing && v.Value.GetToken().Type == token.ImplicitNullType {
			value.at = at // the token of what is not there is nowhere
		}
		m.size += nodeSize + len(v.Key.GetToken().Value) + value.size
		e := entry{name: v.Key.GetToken().Value, at: at, value: value}
		if v.Key.IsMergeKey() {
			e.name = "<<"
			if merges = append(merges, e); len(merges) > 1 {
				b.r.add(at, `"<<" stands twice in one mapping`, "write <<: [*a, *b]")
			}
			continue
		}
		if first, ok := seen[e.name]; ok {
			m.twice = append(m.twice, twice{name: e.name, at: at, first: first})
			continue
		}
		seen[e.name] = at
		m.entries = append(m.entries, e)
	}
	for _, e := range merges {
		b.merge(m, e, e.value, seen)
	}
	return m
}

// merge adds the entries of a mapping, or of a list of mappings, that are not
// there yet.
func (b *builder) merge(into *node, e entry, from *node, seen map[string]spot) {
	switch from.kind {
	case list:
		for _, item := range from.items {
			if item.kind == list {
				item = &node{} // lists of lists of aliases: no
			}
			b.merge(into, e, item, seen)
		}
	case mapping: // alias has counted it
		for _, e := range from.entries {
			if _, ok := seen[e.name]; ok {
				continue
			}
			seen[e.name] = e.at
			into.entries = append(into.entries, e)
			into.size += nodeSize + len(e.name) + e.value.size
		}
	default:
		b.r.add(e.spot(), `"<<" takes over the keys of a mapping, and this is none`, "write <<: *name, where a mapping is marked by &name")
	}
}

func (b *builder) alias(n *ast.AliasNode) *node {
	name, at := n.Value.GetToken().Value, b.r.src.token(n.Start)
	at.to += len(name)
	target, known := b.anchors[name]
	switch {
	case !known:
		b.r.addSuggesting(at, fmt.Sprintf("the alias *%s has no anchor &%s above it", cut(name), cut(name)), func() string {
			names := make([]string, 0, len(b.anchors))
			for a := range b.anchors {
				names = append(names, a)
			}
			if best := nearest(name, names); best != "" {
				return fmt.Sprintf("did you mean *%s?", best)
			}
			return "mark a value with &" + cut(name) + " first; a text that begins with * needs quotes"
		})
	case target == nil:
		b.r.add(at, fmt.Sprintf("the alias *%s stands inside its own anchor", cut(name)), "a value cannot contain itself")
	case b.expand(at, target.size):
		return target
	}
	return &node{at: at}
}

// expand counts what aliases add.
func (b *builder) expand(at spot, size int) bool {
	before := b.expanded
	if b.expanded += size; b.expanded <= maxExpanded {
		return true
	}
	if b.expanded = maxExpanded + 1; before > maxExpanded {
		return false // reported
	}
	b.r.add(at, fmt.Sprintf("the aliases of this file add more than %d MiB to it", maxExpanded>>20), "write fewer of them")
	return false
}

// cut is a name for a message, without quotes.
func cut(name string) string {
	return strings.Trim(strings.TrimSuffix(quote(name), "…"), `"`)
}
