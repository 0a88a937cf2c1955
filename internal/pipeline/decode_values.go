package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The meanings of an unquoted scalar in the YAML 1.2 core schema: yes, no, on and
// off are texts.
type plain int

const (
	plainText plain = iota
	plainNull
	plainTrue
	plainFalse
	plainNumber    // in JSON syntax
	plainOddNumber // a number to some YAML readers, but not in JSON syntax
)

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	oddNumber  = regexp.MustCompile(`^[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|\.[0-9][0-9_]*([eE][-+]?[0-9]+)?|\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

func plainKind(text string) plain {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return plainNull
	case "true", "True", "TRUE":
		return plainTrue
	case "false", "False", "FALSE":
		return plainFalse
	}
	switch {
	case jsonNumber.MatchString(text):
		return plainNumber
	case oddNumber.MatchString(text):
		return plainOddNumber
	}
	return plainText
}

// maxDepthJSON bounds the depth that aliases can build from shallow parts; stores
// accept 1,000 levels.
const maxDepthJSON = 2 * maxDepth

// json appends a value as JSON, with keys in the order of the file and numbers as
// written.
func (d *decoder) json(to []byte, n *node, of string, how filling, depth int) []byte {
	if depth > maxDepthJSON {
		d.r.add(n.at, fmt.Sprintf("%s nests deeper than %d levels", of, maxDepthJSON), "keep such data in a file of its own")
		return append(to, "null"...)
	}
	switch n.kind {
	case nothing:
		return append(to, "null"...)
	case list:
		to = append(to, '[')
		for i, item := range n.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = d.json(to, item, of, how, depth+1)
		}
		return append(to, ']')
	case mapping:
		d.onlyOnce(n, of)
		to = append(to, '{')
		for i, e := range n.entries {
			if i > 0 {
				to = append(to, ',')
			}
			d.checkNUL(e.at, "a key of "+of, e.name)
			to = append(appendText(to, e.name), ':')
			to = d.json(to, e.value, of, how, depth+1)
		}
		return append(to, '}')
	}
	n = d.final(n, of, how)
	what := plainText
	if n.plain {
		what = plainKind(n.text)
	}
	switch what {
	case plainTrue:
		return append(to, "true"...)
	case plainFalse:
		return append(to, "false"...)
	case plainNumber:
		return append(to, n.text...)
	case plainOddNumber:
		d.r.add(n.at, fmt.Sprintf("%s in %s is not a JSON number", cut(n.text), of), fmt.Sprintf("write %s for the text, or the number in decimal digits", quote(n.text)))
		return append(to, "null"...)
	}
	d.checkNUL(n.at, "a text in "+of, n.text)
	return appendText(to, n.text)
}

func appendText(to []byte, text string) []byte {
	raw, err := json.Marshal(text)
	if err != nil {
		return append(to, `""`...) // Marshal accepts every string
	}
	return append(to, raw...)
}

// whole reads an unquoted whole number.
func (d *decoder) whole(f field, least, most int, example string) int {
	n, ok := wholeNumber(f.value.text)
	switch {
	case ok && !f.value.plain:
		d.r.add(f.spot(), f.label()+" is a text, not a number", fmt.Sprintf("write it without quotes: %s: %s", f.name, f.value.text))
	case !ok:
		d.wrong(f, "a whole number", example)
	case n < least || n > most:
		d.r.add(f.spot(), fmt.Sprintf("%s is %s, and must be from %d to %d", f.label(), cut(f.value.text), least, most), f.example(example))
	default:
		return n
	}
	return 0
}

// wholeNumber parses digits with an optional minus sign. A number out of range
// becomes the largest int.
func wholeNumber(text string) (int, bool) {
	if !jsonNumber.MatchString(text) || strings.ContainsAny(text, ".eE") {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil || n != 0
}

var (
	goDuration   = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)
	saidDuration = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([a-z]+)\.?$`)
)

var units = map[string]string{
	"ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
}

var days = map[string]int{"d": 1, "day": 1, "days": 1, "w": 7, "week": 7, "weeks": 7}

// duration reads a duration in Go syntax.
func (d *decoder) duration(f field, example string) time.Duration {
	if f.value.kind != scalar {
		d.wrong(f, "a duration", example)
		return 0
	}
	length, problem, hint := parseDuration(f.value.text)
	if problem != "" {
		d.r.add(f.spot(), fmt.Sprintf("%s is %s, %s", f.label(), quote(f.value.text), problem), cmp.Or(hint, f.example(example)))
	}
	return length
}

// takes reports whether parseDuration accepts a text, for hints.
func takes(text string) bool {
	if !goDuration.MatchString(text) {
		return false
	}
	_, problem, _ := parseDuration(text)
	return problem == ""
}

// parseDuration parses 90s, 1m30s, 1.5h. The problem continues "… is "text", ";
// the hint is "" without a guess.
func parseDuration(text string) (length time.Duration, problem, hint string) {
	if goDuration.MatchString(text) {
		length, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return 0, "longer than can be counted", "leave the key out for no limit"
		case length == 0:
			return 0, "which leaves no time", "leave the key out for no limit"
		case length < time.Millisecond:
			return 0, "and less than a millisecond", ""
		}
		return length, "", ""
	}
	lower := strings.ToLower(strings.TrimSpace(text))
	if jsonNumber.MatchString(lower) && !strings.HasPrefix(lower, "-") {
		if strings.Trim(lower, "0.") == "" {
			return 0, "which leaves no time", "leave the key out for no limit"
		}
		if !takes(lower+"s") || !takes(lower+"m") {
			return 0, "a number without a unit", ""
		}
		return 0, "a number without a unit", fmt.Sprintf("write %ss for seconds, or %sm for minutes", cut(lower), cut(lower))
	}
	if strings.HasPrefix(lower, "-") {
		return 0, "and cannot be negative", ""
	}
	problem = "which is not a duration"
	if said := saidDuration.FindStringSubmatch(lower); said != nil {
		if unit := units[said[2]]; unit != "" && takes(said[1]+unit) {
			return 0, problem, fmt.Sprintf("write %s%s", cut(said[1]), unit)
		}
		if n, err := strconv.Atoi(said[1]); err == nil && days[said[2]] > 0 && n > 0 && n < 15_000 {
			return 0, problem, fmt.Sprintf("write %dh", 24*n*days[said[2]])
		}
	}
	if tight := strings.Join(strings.Fields(lower), ""); takes(tight) {
		return 0, problem, "write " + cut(tight)
	}
	return 0, problem, ""
}
