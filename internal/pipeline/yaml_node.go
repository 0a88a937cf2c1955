package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

type kind int

const (
	nothing kind = iota
	scalar
	list
	mapping
)

// node is a value of the file and its place. Aliases and merge keys are resolved.
// An alias shares the node of its anchor, so the tree is an acyclic graph.
type node struct {
	kind       kind
	text       string // of a scalar, as written
	plain      bool   // unquoted: may mean a number, true or null
	items      []*node
	entries    []entry
	duplicates []duplicate
	size       int // approximate bytes with aliases expanded
	at         spot
}

// entry is a key of a mapping and its value.
type entry struct {
	name  string
	at    spot // of the key
	value *node
}

// duplicate is a repeated key of a mapping.
type duplicate struct {
	name      string
	at, first spot
}

// spot returns the place of a problem with the value: the key if the value begins
// on a later line.
func (e entry) spot() spot {
	if e.at.line != e.value.at.line {
		return e.at
	}
	return e.value.at
}

func (n *node) get(name string) (entry, bool) {
	i := slices.IndexFunc(n.entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return n.entries[i], true
}

const (
	nodeSize = 16 // size of a node without its texts
	// maxExpanded bounds the size that aliases add. It suffices for shared settings of
	// MaxTasks tasks.
	maxExpanded = 8 << 20
)

// builder converts nodes of the parser.
type builder struct {
	r        *reporter
	anchors  map[string]*node // nil while the anchor is being read
	expanded int              // size added by aliases so far
}

// parseTree returns the tree of a source, or nil after it reports a problem.
func parseTree(s *source, r *reporter) *node {
	tokens := tokenize(s, r)
	if r.failed() {
		return nil
	}
	if g := (guard{src: s, r: r, tokens: tokens}); !g.check() {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.addSyntax(err)
		return nil
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		what := "is empty"
		if strings.TrimSpace(s.text) != "" {
			what = "has nothing but comments"
		}
		r.add(s.whole(), "the file "+what, form)
		return nil
	}
	b := builder{r: r, anchors: make(map[string]*node)}
	root := b.build(file.Docs[0].Body)
	if r.failed() {
		return nil
	}
	return root
}

// build never returns nil.
func (b *builder) build(n ast.Node) *node {
	at := b.r.src.whole()
	tok := n.GetToken()
	if tok != nil {
		at = b.r.src.token(tok)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		m := b.mapping(n.Values)
		if n.IsFlowStyle {
			m.at = b.bracket(n.Start, n.End)
		}
		return m
	case *ast.SequenceNode:
		s := &node{kind: list, size: nodeSize, at: b.bracket(n.Start, n.End)}
		for _, v := range n.Values {
			item := b.build(v)
			s.items = append(s.items, item)
			s.size += item.size
		}
		return s
	case *ast.AnchorNode:
		name := n.Name.GetToken().Value
		b.anchors[name] = nil
		v := b.build(n.Value)
		b.anchors[name] = v
		return v
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		at.to += len(name)
		return b.alias(name, at)
	case *ast.LiteralNode:
		return &node{kind: scalar, text: n.Value.Value, size: nodeSize + len(n.Value.Value), at: at}
	case *ast.NullNode:
		return &node{plain: true, size: nodeSize, at: at}
	case ast.ScalarNode:
		quoted := tok.Type == token.DoubleQuoteType || tok.Type == token.SingleQuoteType
		return &node{kind: scalar, text: tok.Value, plain: !quoted, size: nodeSize + len(tok.Value), at: at}
	}
	b.r.add(at, "this has no use in a pipeline", "write a text, a list or a mapping")
	return &node{at: at}
}

// bracket returns the spot from [ or { to its closing bracket, if there is one.
func (b *builder) bracket(start, end *token.Token) spot {
	at := b.r.src.token(start)
	if end != nil && end.Position.Offset > at.from {
		at.to = end.Position.Offset + 1
	}
	return at
}

// mapping builds a mapping at the spot of its first key.
func (b *builder) mapping(values []*ast.MappingValueNode) *node {
	m := &node{kind: mapping, size: nodeSize}
	seen := make(map[string]spot, len(values))
	var merges []entry
	for i, v := range values {
		key := v.Key.GetToken()
		e := entry{name: key.Value, at: b.r.src.token(key), value: b.build(v.Value)}
		if v.Value.GetToken().Type == token.ImplicitNullType {
			e.value.at = e.at // the parser inserted the token: it has no place
		}
		if i == 0 {
			m.at = e.at
		}
		m.size += nodeSize + len(e.name) + e.value.size
		first, again := seen[e.name]
		switch {
		case v.Key.IsMergeKey():
			if merges = append(merges, e); len(merges) > 1 {
				b.r.add(e.at, `"<<" stands twice in one mapping`, "write <<: [*a, *b]")
			}
		case again:
			m.duplicates = append(m.duplicates, duplicate{name: e.name, at: e.at, first: first})
		default:
			seen[e.name] = e.at
			m.entries = append(m.entries, e)
		}
	}
	for _, e := range merges {
		b.merge(m, e, e.value, seen)
	}
	return m
}

// merge adds the missing entries of a mapping or of a list of mappings. e is the
// merge key.
func (b *builder) merge(into *node, e entry, from *node, seen map[string]spot) {
	switch from.kind {
	case list:
		for _, item := range from.items {
			if item.kind == list {
				item = &node{} // nested lists are refused
			}
			b.merge(into, e, item, seen)
		}
	case mapping: // alias counted its size
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

// alias returns the node of an anchor, or an empty node after it reports a
// problem.
func (b *builder) alias(name string, at spot) *node {
	target, known := b.anchors[name]
	switch {
	case !known:
		b.r.addSuggesting(at, fmt.Sprintf("the alias *%s has no anchor &%s above it", cut(name), cut(name)), func() string {
			if best := nearest(name, slices.Sorted(maps.Keys(b.anchors))); best != "" {
				return fmt.Sprintf("did you mean *%s?", best)
			}
			return "mark a value with &" + cut(name) + " first; a text that begins with * needs quotes"
		})
	case target == nil:
		b.r.add(at, fmt.Sprintf("the alias *%s stands inside its own anchor", cut(name)), "a value cannot contain itself")
	case b.expanded > maxExpanded: // reported
	case b.expanded+target.size > maxExpanded:
		b.expanded = maxExpanded + 1
		b.r.add(at, fmt.Sprintf("the aliases of this file add more than %d MiB to it", maxExpanded>>20), "write fewer of them")
	default:
		b.expanded += target.size
		return target
	}
	return &node{at: at}
}
