package pipeline

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// syntax maps messages of the lexer and parser to ours. The first row applies
// whose text is part of theirs.
var syntax = []struct{ theirs, ours, hint string }{
	{"'\t' that cannot start", "a tab indents this line", "indent with spaces"},
	{"tab character", "a tab where YAML wants spaces", "indent with spaces"},
	{"end character of double-quoted", `the quote " is not closed`, `close it with ", and write \" for one inside`},
	{"end character of single-quoted", "the quote ' is not closed", "close it with ', and write '' for one inside"},
	{"unknown escape character", "a backslash before a character that needs none", `in double quotes write \\ for a backslash, or use single quotes`},
	{"escaped UTF", "the escape is cut short", `write \u and four hexadecimal digits`},
	{"surrogate", "half of a surrogate pair is not a character", "write the character itself"},
	{"reserved character", "a text cannot begin with this character", "put the text in quotes"},
	{"after document separator", "nothing may follow --- in its line", "begin on the next line"},
	{"document separator", "a line of --- or ... inside a quoted text", "close the quotes before it, or indent the line"},
	{"invalid header option", "after | or > only +, - and one digit may stand", "begin the text on the next line; a text that begins with | or > needs quotes"},
	{"multi-line content", "a text is announced by | or >, and none follows", "indent the lines of the text"},
	{"indent after space only", "the empty lines above are indented deeper than the text", "remove the spaces of the empty lines"},
	{"number of indent", "the text is indented less than announced after | or >", "indent it further, or remove the digit"},
	{"invalid tag character", "a tag, and a pipeline has none", "put a text that begins with ! in quotes"},
	{"map key-value is pre-defined", "this line is indented deeper than the key above it, which has a value already", "indent both alike"},
	{"mapping value is not allowed", `a text with ": " inside`, quoteHint},
	{"non-map value", `this line is not "key: value"`, "write a space after the colon, or indent the line if it goes on with the text above"},
	{"',' or ']'", "a comma or ] is missing before this", "write [a, b]; a text that begins with [ needs quotes"},
	{"',' or '}'", "a comma or } is missing before this", "write {a: 1, b: 2}; a text that begins with { needs quotes"},
	{"']' not found", "the bracket [ is not closed", "close it with ]; a text that begins with [ needs quotes"},
	{"end token '}'", "the bracket { is not closed", "close it with }; a text that begins with { needs quotes"},
	{"corresponding to ']'", "] without [", "remove it, or put the text in quotes"},
	{"corresponding to '}'", "} without {", "remove it, or put the text in quotes"},
	{"flow map content", "this cannot stand in { }", "write {key: value, key: value}; a text that begins with { needs quotes"},
	{"find map value", "the value is missing", "write key: value"},
	{"but found ','", "a comma without a value before it", "write [a, b]"},
	{"block sequence entries", "a list cannot begin in the line of its key", "begin it on the next line, or write [a, b]"},
	{"invalid key", "this is not a key", "write key: value; a text with a colon and a space needs quotes"},
	{"implicit line break", "a key must stand in one line", "write key: value"},
	{"map key", "this cannot be a key", "write key: value; a text that begins with { needs quotes"},
	{"scalar value", "a value is missing, or stands in the wrong place", "look at the commas, colons and quotes before it"},
	{"unexpected key name", "a key is missing, or goes over more than one line", "write key: value, with a space after the colon"},
	{"alias", "a * without a name", "put the text in quotes"},
	{"anchor", "an anchor (&) without a value", "put a text that begins with & in quotes"},
	{"value is not allowed", "the indentation of this line fits nothing above it", "indent it like the keys that it belongs to"},
	{"unexpected end content", "something follows the end of the document", "remove the line of ..."},
}

// translate returns our message and hint for a message of the lexer or parser.
// behind reports that the place follows other text on its line.
func translate(theirs string, behind bool) (message, hint string) {
	if behind && (strings.Contains(theirs, "invalid header option") || strings.Contains(theirs, "value is not allowed") && !strings.Contains(theirs, "mapping value")) {
		return "this does not belong to what stands before it", "put the whole text in quotes, from its first character on"
	}
	for _, s := range syntax {
		if strings.Contains(theirs, s.theirs) {
			return s.ours, s.hint
		}
	}
	return "this is not YAML: " + quote(theirs), "look at the indentation and the quotes before it"
}

// addSyntax reports an error of the parser.
func (r *reporter) addSyntax(err error) {
	theirs, at := err.Error(), r.src.whole()
	var tok *token.Token
	var located interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &located) {
		theirs, tok = located.GetMessage(), located.GetToken()
	}
	if tok == nil || tok.Position == nil {
		tok = &token.Token{}
	} else {
		at = r.src.token(tok)
	}
	behind := tok.Prev != nil && tok.Prev.Position != nil && tok.Prev.Position.Line == tok.Position.Line
	message, hint := translate(theirs, behind)
	if hint == quoteHint && tok.Type == token.StringType && strings.Contains(strings.TrimSpace(tok.Origin), "\n") {
		message, hint = "the next line is indented so that it goes on with this text", "indent its key like the key in this line"
	}
	r.add(at, message, hint)
}
