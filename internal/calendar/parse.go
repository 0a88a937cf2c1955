package calendar

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// maxExpression is the longest cron expression, in bytes.
const maxExpression = 1000

// field describes the values of a field.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
}

var (
	minuteField  = field{name: "minute", max: 59}
	hourField    = field{name: "hour", max: 23}
	dayField     = field{name: "day of month", min: 1, max: 31}
	monthField   = field{"month", 1, 12, []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}}
	weekdayField = field{"day of week", 0, 6, []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}}
)

const wantFields = "minute, hour, day of month, month, day of week"

var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parse reads a cron expression. Its error names the field, what is wrong with it and what is allowed.
func parse(text string) (civil, error) {
	var c civil
	if len(text) > maxExpression {
		return c, fmt.Errorf("longer than %d bytes", maxExpression)
	}
	if strings.HasPrefix(text, "@") {
		expression, ok := macros[strings.ToLower(text)]
		if !ok {
			return c, errors.New("unknown name; the names are @hourly, @daily, @weekly, @monthly and @yearly (for an interval, use every)")
		}
		text = expression
	}
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return c, errors.New("has a time zone in it; give it as timezone")
	}
	fields := strings.Fields(text)
	switch {
	case len(fields) == 6:
		return c, errors.New("has 6 fields, want 5: " + wantFields + " (no seconds and no year; for an interval below a minute, use every)")
	case len(fields) != 5:
		return c, fmt.Errorf("has %d fields, want 5: %s", len(fields), wantFields)
	}
	var wild [2]bool
	var err error
	if c.minutes, wild[0], err = minuteField.parse(fields[0]); err != nil {
		return c, err
	}
	if c.hours, wild[1], err = hourField.parse(fields[1]); err != nil {
		return c, err
	}
	if c.days, err = parseDays(fields[2]); err != nil {
		return c, err
	}
	if c.months, _, err = monthField.parse(fields[3]); err != nil {
		return c, err
	}
	if c.weekdays, err = parseWeekdays(fields[4]); err != nil {
		return c, err
	}
	c.everyHour = bits.OnesCount64(c.hours) == 24
	c.both = wild[0] || wild[1]
	c.either = restricts(fields[2]) && restricts(fields[4])
	if !c.possible() {
		return c, fmt.Errorf("never fires: no date has the day of month %s, the month %s and the day of week %s", fields[2], fields[3], fields[4])
	}
	return c, nil
}

// restricts reports whether a field of days restricts the dates, as crontab(5) has it: by its first character.
func restricts(text string) bool { return text[0] != '*' && text[0] != '?' }

// parse reads a list of elements. It reports whether one of them is a wildcard: the whole field, with or without a
// step.
func (f field) parse(text string) (set uint64, wild bool, err error) {
	for element := range strings.SplitSeq(text, ",") {
		more, w, err := f.element(element)
		if err != nil {
			return 0, false, err
		}
		set, wild = set|more, wild || w
	}
	return set, wild, nil
}

// element reads one of *, value, range, */step, value/step and range/step.
func (f field) element(text string) (set uint64, wild bool, err error) {
	values, step, stepped := strings.Cut(text, "/")
	from, to, ranged := strings.Cut(values, "-")
	low, high := f.min, f.max
	switch {
	case values == "*":
	case values == "":
		return 0, false, fmt.Errorf("%s has an empty element", f.name)
	default:
		if low, err = f.value(from); err != nil {
			return 0, false, err
		}
		switch {
		case ranged:
			if high, err = f.value(to); err != nil {
				return 0, false, err
			}
			if high == 0 && low > 0 && f.weekly() {
				high = 7 // Sunday ends the week
			}
		case !stepped:
			high = low
		}
	}
	if low > high {
		return 0, false, fmt.Errorf("%s range %s runs backwards; write two ranges, from %s to %s and from %s to %s",
			f.name, values, from, f.text(f.max), f.text(f.min), to)
	}
	by := 1
	if stepped {
		if by, err = f.step(step); err != nil {
			return 0, false, err
		}
	}
	for v := low; v <= high; v += by {
		set |= 1 << v
	}
	if f.weekly() {
		set = (set | set>>7) &^ (1 << 7)
	}
	return set, high-low >= f.max-f.min, nil
}

func (f field) weekly() bool { return f.name == weekdayField.name }

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(name, text) {
			return f.min + i, nil
		}
	}
	n, err := number(text)
	most := f.max
	if f.weekly() {
		most = 7
	}
	switch {
	case err != nil && f.names != nil:
		return 0, fmt.Errorf("%s %q is not a number from %d to %d or a name from %s to %s", f.name, text, f.min, most, f.text(f.min), f.text(f.max))
	case err != nil:
		return 0, fmt.Errorf("%s %q is not a number from %d to %d", f.name, text, f.min, most)
	case n < f.min || n > most:
		return 0, fmt.Errorf("%s %s is not between %d and %d", f.name, text, f.min, most)
	}
	return n, nil
}

// text returns the name of a value, or its number.
func (f field) text(value int) string {
	if f.names != nil {
		return f.names[value-f.min]
	}
	return strconv.Itoa(value)
}

func (f field) step(text string) (int, error) {
	n, err := number(text)
	size := f.max - f.min + 1
	switch {
	case err != nil || n == 0:
		return 0, fmt.Errorf("%s step %q is not a number from 1 to %d", f.name, text, size)
	case n > size:
		return 0, fmt.Errorf("%s step %d is more than its %d values; for another interval, use every", f.name, n, size)
	}
	return n, nil
}

// number reads up to four digits.
func number(text string) (int, error) {
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0, strconv.ErrSyntax
		}
	}
	if len(text) > 4 {
		return 0, strconv.ErrRange
	}
	return strconv.Atoi(text)
}

// parseDays reads the field of days of the month.
func parseDays(text string) (monthDays, error) {
	var d monthDays
	for element := range strings.SplitSeq(text, ",") {
		upper := strings.ToUpper(element)
		before, fromLast := strings.CutPrefix(upper, "L-")
		nearest, isNearest := strings.CutSuffix(upper, "W")
		switch {
		case upper == "?":
			element = "*"
		case upper == "L":
			d.last |= 1
			continue
		case upper == "LW":
			d.lastW = true
			continue
		case fromLast:
			n, err := number(before)
			if err != nil || n < 1 || n > 30 {
				return d, fmt.Errorf("day of month %q: the number after L- is not between 1 and 30", element)
			}
			d.last |= 1 << n
			continue
		case isNearest:
			n, err := dayField.value(nearest)
			if err != nil {
				return d, fmt.Errorf("day of month %q: the day before W is not a number from 1 to 31", element)
			}
			d.nearest |= 1 << n
			continue
		}
		set, _, err := dayField.element(element)
		if err != nil {
			return d, err
		}
		d.days |= set
	}
	return d, nil
}

// parseWeekdays reads the field of days of the week.
func parseWeekdays(text string) (weekdays, error) {
	var w weekdays
	for element := range strings.SplitSeq(text, ",") {
		weekday, nth, isNth := strings.Cut(element, "#")
		name, isLast := strings.CutSuffix(strings.ToUpper(element), "L")
		switch {
		case element == "?":
			element = "*"
		case isNth:
			set, err := weekdayField.day(weekday)
			if err != nil {
				return w, err
			}
			n, err := number(nth)
			if err != nil || n < 1 || n > 5 {
				return w, fmt.Errorf("day of week %q: the number after # is not between 1 and 5", element)
			}
			w.nth[n] |= set
			continue
		case isLast && name == "":
			return w, errors.New("day of week L has no weekday; for the last Friday of a month write FRIL, for its last day write L as day of month")
		case isLast:
			set, err := weekdayField.day(name)
			if err != nil {
				return w, err
			}
			w.last |= set
			continue
		}
		set, _, err := weekdayField.element(element)
		if err != nil {
			return w, err
		}
		w.all |= set
	}
	return w, nil
}

// day reads one day of the week.
func (f field) day(text string) (uint64, error) {
	n, err := f.value(text)
	return 1 << (n % 7), err
}
