package weaver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/task"
)

// validator is implemented by inputs and outputs that check themselves.
type validator interface{ Validate() error }

// validate asks the value, or else its address: Validate may have either
// receiver, and T may be a pointer itself.
func validate[T any](v *T) error {
	if c, ok := any(*v).(validator); ok {
		return c.Validate()
	}
	if c, ok := any(v).(validator); ok {
		return c.Validate()
	}
	return nil
}

// encode turns a value into JSON that every store can keep.
func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// encodeOutput validates and encodes what a handler or step returned.
func encodeOutput[T any](what string, v T) (json.RawMessage, error) {
	if err := validate(&v); err != nil {
		return nil, &engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the %s is not valid: %w", what, err)}
	}
	raw, err := encode(v)
	if err != nil {
		return nil, &engine.KindError{Kind: task.KindValidation, Err: fmt.Errorf("the %s cannot be stored: %w", what, err)}
	}
	return raw, nil
}

// maxDepth is how deep JSON may nest.
const maxDepth = 1000

// checkJSON refuses JSON that some store could not keep as it is: NUL
// characters, lone surrogates, bytes that are not UTF-8, duplicate keys, and
// nesting deeper than 1,000. The error names the path.
func checkJSON(raw json.RawMessage) error {
	if !utf8.Valid(raw) {
		return errors.New("$: contains bytes that are not UTF-8")
	}
	// Everything else that is refused needs an escape or an object of raw JSON;
	// most payloads are accepted by one look.
	if !bytes.Contains(raw, []byte(`\u`)) && bytes.Count(raw, []byte(`{`)) <= 1 && bytes.Count(raw, []byte(`[`)) == 0 && bytes.Count(raw, []byte(`:`)) < 2 {
		if json.Valid(raw) {
			return nil
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	c := checker{raw: raw, dec: dec}
	if err := c.value("$", 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("$: something follows the JSON value")
	}
	return nil
}

type checker struct {
	raw []byte
	dec *json.Decoder
}

func (c *checker) value(path string, depth int) error {
	before := c.dec.InputOffset()
	tok, err := c.dec.Token()
	if err != nil {
		return fmt.Errorf("%s: not JSON: %w", path, err)
	}
	switch t := tok.(type) {
	case string:
		return c.text(path, before)
	case json.Delim:
		if depth == maxDepth {
			return fmt.Errorf("%.80s…: nested deeper than %d levels", path, maxDepth)
		}
		if t == '[' {
			for i := 0; c.dec.More(); i++ {
				if err := c.value(path+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
					return err
				}
			}
		} else {
			seen := make(map[string]bool)
			for c.dec.More() {
				at := c.dec.InputOffset()
				key, err := c.dec.Token()
				if err != nil {
					return fmt.Errorf("%s: not JSON: %w", path, err)
				}
				name, _ := key.(string) // a key is a string, or Token failed
				inner := path + "." + name
				if err := c.text(inner, at); err != nil {
					return err
				}
				if seen[name] {
					return fmt.Errorf("%s: the key stands twice", inner)
				}
				seen[name] = true
				if err := c.value(inner, depth+1); err != nil {
					return err
				}
			}
		}
		if _, err := c.dec.Token(); err != nil {
			return fmt.Errorf("%s: not JSON: %w", path, err)
		}
	}
	return nil
}

// text checks the escapes of the string token that ends at the decoder's
// offset and begins somewhere after from.
func (c *checker) text(path string, from int64) error {
	s := c.raw[from:c.dec.InputOffset()]
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if s[i] != 'u' {
			continue
		}
		r := hex4(s[i+1:])
		switch {
		case r == 0:
			return fmt.Errorf("%s: contains a NUL character", path)
		case r >= 0xDC00 && r <= 0xDFFF:
			return fmt.Errorf("%s: contains a lone surrogate", path)
		case r >= 0xD800 && r <= 0xDBFF:
			if len(s) < i+11 || s[i+5] != '\\' || s[i+6] != 'u' {
				return fmt.Errorf("%s: contains a lone surrogate", path)
			}
			if low := hex4(s[i+7:]); low < 0xDC00 || low > 0xDFFF {
				return fmt.Errorf("%s: contains a lone surrogate", path)
			}
			i += 6
		}
		i += 4
	}
	return nil
}

func hex4(s []byte) int {
	n, err := strconv.ParseUint(string(s[:min(4, len(s))]), 16, 32)
	if err != nil {
		return -1
	}
	return int(n)
}
