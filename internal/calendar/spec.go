package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Spec says when a schedule fires: exactly one of Cron and Every is set. Its JSON is the stored form.
type Spec struct {
	// Cron is a cron expression of five fields or a name such as @daily.
	Cron string `json:"cron,omitempty"`
	// Timezone is the zone of Cron, a name of the IANA time zone database; default UTC.
	Timezone string `json:"timezone,omitempty"`
	// Every is elapsed time between two fires: whole seconds, at least one. Clock changes do not matter.
	Every Duration `json:"every,omitzero"`
	// Anchor is the instant from which the fires of Every are counted, in both directions;
	// default 1970-01-01T00:00:00Z. Fractions of a second are dropped.
	Anchor time.Time `json:"anchor,omitzero"`
	// Jitter is the upper bound of [Recurrence.Delay]; default none.
	Jitter Duration `json:"jitter,omitzero"`
	// NotBefore and NotAfter are the bounds of the fires, both inclusive; zero is no bound.
	NotBefore time.Time `json:"not_before,omitzero"`
	NotAfter  time.Time `json:"not_after,omitzero"` // see NotBefore
}

// String returns the rule in words: "0 3 * * * in Europe/Berlin" or "every 15m".
func (s Spec) String() string {
	if s.Cron == "" {
		return "every " + s.Every.String()
	}
	return s.Cron + " in " + s.zone()
}

func (s Spec) zone() string {
	if s.Timezone == "" {
		return "UTC"
	}
	return s.Timezone
}

// Duration is a [time.Duration] whose text, in JSON too, is like "15m" or "1h30m".
type Duration time.Duration

// String returns the duration without units that are zero at its end: "15m".
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText returns the text of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [time.ParseDuration] reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30s, 15m or 1h30m", text)
	}
	*d = Duration(parsed)
	return nil
}

// New checks and compiles a spec. Its error has a line for each problem.
func New(s Spec) (*Recurrence, error) {
	r := &Recurrence{first: earliest, last: latest, loc: time.UTC}
	var problems []error
	switch {
	case s.Cron != "" && s.Every != 0:
		problems = append(problems, fmt.Errorf("cron %q and every %s: give one of them", s.Cron, s.Every))
	case s.Cron != "":
		problems = append(problems, r.setCron(&s)...)
	case s.Every != 0:
		problems = append(problems, r.setEvery(&s)...)
	default:
		problems = append(problems, errors.New("neither cron nor every is given"))
	}
	if s.Jitter < 0 {
		problems = append(problems, fmt.Errorf("jitter %s is negative", s.Jitter))
	}
	problems = append(problems, r.setBounds(&s)...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if _, ok := r.next(r.first); !ok {
		return nil, fmt.Errorf("%s never fires between not_before and not_after", s)
	}
	r.spec = s
	return r, nil
}

func (r *Recurrence) setCron(s *Spec) []error {
	s.Cron = strings.Join(strings.Fields(s.Cron), " ")
	var problems []error
	times, err := parse(s.Cron)
	if err != nil {
		problems = append(problems, fmt.Errorf("cron %q: %w", s.Cron, err))
	}
	s.Timezone = s.zone()
	if r.loc, err = load(s.Timezone); err != nil {
		problems = append(problems, fmt.Errorf("timezone %q: %w", s.Timezone, err))
	}
	if !s.Anchor.IsZero() {
		problems = append(problems, errors.New("anchor belongs to every, and cron is given"))
	}
	r.rule = cron{civil: times, loc: r.loc}
	return problems
}

func (r *Recurrence) setEvery(s *Spec) []error {
	var problems []error
	d := time.Duration(s.Every)
	switch {
	case d < time.Second:
		problems = append(problems, fmt.Errorf("every %s is shorter than 1s", s.Every))
	case d%time.Second != 0:
		problems = append(problems, fmt.Errorf("every %s is not a whole number of seconds", s.Every))
	}
	if s.Timezone != "" {
		problems = append(problems, fmt.Errorf("timezone %q belongs to cron: every is elapsed time, which is the same in all zones", s.Timezone))
	}
	e := every{period: int64(d / time.Second)}
	if !s.Anchor.IsZero() {
		if outside(s.Anchor) {
			problems = append(problems, errors.New("anchor is not between the years 1 and 9999"))
		}
		s.Anchor = time.Unix(s.Anchor.Unix(), 0).UTC()
		e.anchor = s.Anchor.Unix()
	}
	r.rule = e
	return problems
}

func (r *Recurrence) setBounds(s *Spec) []error {
	if outside(s.NotBefore) || outside(s.NotAfter) {
		return []error{errors.New("not_before and not_after have to be between the years 1 and 9999")}
	}
	if !s.NotBefore.IsZero() {
		s.NotBefore = s.NotBefore.UTC()
		r.first = ceil(s.NotBefore)
	}
	if !s.NotAfter.IsZero() {
		s.NotAfter = s.NotAfter.UTC()
		r.last = s.NotAfter.Unix()
	}
	if !s.NotAfter.IsZero() && s.NotAfter.Before(s.NotBefore) {
		return []error{fmt.Errorf("not_after %s is before not_before %s", s.NotAfter.Format(time.RFC3339), s.NotBefore.Format(time.RFC3339))}
	}
	return nil
}

// outside reports whether a year cannot be written in RFC 3339.
func outside(t time.Time) bool { return t.Unix() < earliest || t.Unix() > latest }
