package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// text returns any scalar as written: 8080 and true are texts too. It returns
// false after it reports a problem.
func (d *decoder) text(f field, example string) (string, bool) {
	if f.value.kind != scalar {
		d.wrong(f, "a text", example)
		return "", false
	}
	return f.value.text, d.checkNUL(f.spot(), f.label(), f.value.text)
}

// checkNUL refuses NUL characters, which environments, arguments and stores cannot
// hold.
func (d *decoder) checkNUL(at spot, what, text string) bool {
	if strings.ContainsRune(text, 0) {
		return d.r.add(at, what+" contains a NUL character", `remove \0`)
	}
	return true
}

// filledText is text, and refuses an empty text.
func (d *decoder) filledText(f field, example string) string {
	text, ok := d.text(f, example)
	if ok && strings.TrimSpace(text) == "" {
		ok = d.r.add(f.spot(), f.label()+" is empty", f.example(example))
	}
	if !ok {
		return ""
	}
	return text
}

// name checks the name of a pipeline or task.
func (d *decoder) name(at spot, what, name, example string) {
	switch {
	case name == "":
		d.r.add(at, what+" is empty", "write for example "+example)
	case len(name) > MaxName:
		d.r.add(at, fmt.Sprintf("%s is %d bytes long, and at most %d are allowed", what, len(name), MaxName), "shorten it")
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		d.r.add(at, what+" has characters that cannot be printed", "keep letters, digits, spaces and signs, in one line")
	case strings.TrimSpace(name) != name:
		d.r.add(at, what+" begins or ends with a space", "remove it")
	}
}

// nameList reads a list of names; a single name needs no brackets.
func (d *decoder) nameList(f field, example string) []field {
	switch f.value.kind {
	case scalar:
		return []field{f}
	case list:
		names := make([]field, 0, len(f.value.items))
		for _, item := range f.value.items {
			if item.kind != scalar {
				d.wrongItem(f, item, example)
				continue
			}
			names = append(names, f.item(item))
		}
		return names
	}
	d.wrong(f, "a list of names", example)
	return nil
}

// wrongItem reports a list item that is not a text.
func (d *decoder) wrongItem(f field, item *node, example string) {
	hint := f.example(example)
	if item.kind == mapping {
		hint += `; a text with a colon needs quotes: "a:b"`
	}
	d.r.add(item.at, fmt.Sprintf("an entry of %s is %s, not a text", f.label(), item.describe()), hint)
}

// texts reads a mapping of texts. check may refuse a name.
func (d *decoder) texts(f field, example string, how filling, check func(entry) bool) map[string]string {
	if !d.mapping(f, example) {
		return nil
	}
	d.onlyOnce(f.value, f.label())
	texts := make(map[string]string, len(f.value.entries))
	for _, e := range f.value.entries {
		v := field{e, f.label()}
		if how != literally {
			e.value = d.final(e.value, v.label(), how)
		}
		switch {
		case !check(e):
		case e.value.kind == nothing:
			d.r.add(e.spot(), v.label()+" has no value", `write "" for an empty text`)
		case e.value.kind != scalar:
			d.r.add(e.spot(), fmt.Sprintf("%s is %s, not a text", v.label(), e.value.describe()), "write for example "+example)
		case d.checkNUL(e.spot(), v.label(), e.value.text):
			texts[e.name] = e.value.text
		}
	}
	return texts
}

func (d *decoder) env(f field) map[string]string {
	d.warnLiterals(f, func(entry) literal { return literalEnv })
	return d.texts(f, "{LANG: C, PORT: 8080}", atRun, func(v entry) bool { return d.variable(v.at, f, v.name) })
}

func (d *decoder) dir(f field) string {
	d.warnLiteral(f.value, f.label(), literalPath)
	return d.filledText(d.finalField(f, atRead), "work")
}

// variable checks the name of an environment variable.
func (d *decoder) variable(at spot, f field, name string) bool {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return d.r.add(at, fmt.Sprintf("%s in %s cannot name a variable", quote(name), f.label()), "write a name such as LANG or AWS_REGION, without spaces and =")
	}
	return true
}

func (d *decoder) inheritEnv(f field) []string {
	var names []string
	for _, item := range d.nameList(f, "[AWS_REGION, GIT_*]") {
		name := item.value.text
		if !d.variable(item.spot(), f, name) {
			continue
		}
		if star := strings.IndexByte(name, '*'); star >= 0 && star < len(name)-1 {
			d.r.add(item.spot(), fmt.Sprintf("%s in %s has a * that is not at its end", quote(name), f.label()), "write GIT_* for all names that begin with GIT_")
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (d *decoder) envFile(f field) string {
	d.warnLiteral(f.value, f.label(), literalFile)
	return d.filledText(d.finalField(f, atRead), ".env")
}

func (d *decoder) secretEnv(f field) []string {
	var names []string
	for _, item := range d.nameList(f, "[API_TOKEN]") {
		name := item.value.text
		if !d.variable(item.spot(), f, name) {
			continue
		}
		if strings.Contains(name, "*") {
			d.r.add(item.spot(), fmt.Sprintf("%s in %s has a *", quote(name), f.label()), "write each name: what a * would match is not known to be secret")
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (d *decoder) labels(f field) map[string]string {
	all := d.texts(f, "{team: data}", atRead, func(l entry) bool {
		if l.name == "" || len(l.name) > maxKeyBytes {
			return d.r.add(l.at, fmt.Sprintf("a label of %s has a name of %d bytes", f.of, len(l.name)), fmt.Sprintf("use 1 to %d bytes", maxKeyBytes))
		}
		return d.checkNUL(l.at, "the name of a label of "+f.of, l.name)
	})
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := len(all[name]); n > maxKeyBytes {
			d.r.add(f.spot(), fmt.Sprintf("the label %s of %s is %d bytes long, and at most %d are allowed", quote(name), f.of, n, maxKeyBytes), "shorten it: labels are for lists")
		}
	}
	return all
}
