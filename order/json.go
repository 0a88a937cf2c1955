package order

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is the deepest nesting of a request body.
const maxDepth = 32

// CheckJSON refuses a body that other programs may read differently: duplicate keys, NUL,
// lone surrogates, invalid UTF-8, data behind the value, nesting over 32 levels. The error
// is an *Invalid that names each field by its path ("tags[2]").
func CheckJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return invalid("", "the body is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	c := jsonCheck{raw: raw, d: d}
	if err := c.value("", 0); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return invalid("", "there is data behind the JSON value")
	}
	return nil
}

// jsonCheck walks the tokens of a body.
type jsonCheck struct {
	raw []byte
	d   *json.Decoder
}

func (c *jsonCheck) value(path string, depth int) error {
	if depth > maxDepth {
		return invalid(path, fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	tok, err := c.token(path)
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		return c.object(path, depth)
	case json.Delim('['):
		for i := 0; c.d.More(); i++ {
			if err := c.value(path+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
				return err
			}
		}
		_, err = c.token(path)
	}
	return err
}

func (c *jsonCheck) object(path string, depth int) error {
	seen := make(map[string]bool)
	for c.d.More() {
		tok, err := c.token(path)
		if err != nil {
			return err
		}
		key, ok := tok.(string)
		if !ok {
			return invalid(path, "a key is not a string")
		}
		at := join(path, key)
		if seen[key] {
			return invalid(at, "the key occurs twice")
		}
		seen[key] = true
		if err := c.value(at, depth+1); err != nil {
			return err
		}
	}
	_, err := c.token(path)
	return err
}

// token returns the next token and checks the text of a string.
func (c *jsonCheck) token(path string) (json.Token, error) {
	from := c.d.InputOffset()
	tok, err := c.d.Token()
	if err != nil {
		return nil, invalid(path, "not valid JSON: "+strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, ok := tok.(string); ok {
		if what := badEscape(c.raw[from:c.d.InputOffset()]); what != "" {
			return nil, invalid(path, what)
		}
	}
	return tok, nil
}

// badEscape finds NUL and lone surrogates in the source of a JSON string.
func badEscape(src []byte) string {
	for i := 0; i+1 < len(src); i++ {
		if src[i] != '\\' {
			continue
		}
		if src[i+1] != 'u' {
			i++
			continue
		}
		r := hex4(src, i+2)
		i += 5
		switch {
		case r == 0:
			return "contains NUL"
		case r >= 0xDC00 && r <= 0xDFFF:
			return "contains a lone surrogate"
		case r >= 0xD800 && r <= 0xDBFF:
			low := -1
			if i+2 < len(src) && src[i+1] == '\\' && src[i+2] == 'u' {
				low = hex4(src, i+3)
			}
			if low < 0xDC00 || low > 0xDFFF {
				return "contains a lone surrogate"
			}
			i += 6
		}
	}
	return ""
}

func hex4(src []byte, at int) int {
	if at+4 > len(src) {
		return -1
	}
	n, err := strconv.ParseUint(string(src[at:at+4]), 16, 32)
	if err != nil {
		return -1
	}
	return int(n)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
