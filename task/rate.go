package task

import (
	"encoding/json"
	"fmt"
	"time"
)

// Rate limits how often tasks with a key start: at most Starts in every Per, evenly spaced, and up to Burst at once
// after a pause. The zero value limits nothing.
type Rate struct {
	Key    string
	Starts int           // ≥ 1
	Per    time.Duration // at least Starts microseconds
	Burst  int           // ≥ 1
}

// rateJSON is the JSON form of a Rate.
type rateJSON struct {
	Key    string `json:"key"`
	Starts int    `json:"starts"`
	Per    string `json:"per"`
	Burst  int    `json:"burst,omitempty"`
}

// MarshalJSON implements json.Marshaler; "per" is a text like "1m0s".
func (r Rate) MarshalJSON() ([]byte, error) {
	return json.Marshal(rateJSON{r.Key, r.Starts, r.Per.String(), r.Burst})
}

// UnmarshalJSON implements json.Unmarshaler. A burst that is missing is 1.
func (r *Rate) UnmarshalJSON(b []byte) error {
	var j rateJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	per, err := time.ParseDuration(j.Per)
	if err != nil {
		return fmt.Errorf("rate limit: per is %q: want a duration like 1s or 1m", j.Per)
	}
	*r = Rate{j.Key, j.Starts, per, max(j.Burst, 1)}
	if j.Burst < 0 {
		r.Burst = j.Burst // refused by CheckRate
	}
	return nil
}

// Check returns an error that says what is wrong with a rate, or nil.
func (r Rate) Check() error {
	switch {
	case r.Starts < 1:
		return fmt.Errorf("%d starts: want at least 1", r.Starts)
	case r.Per < time.Duration(r.Starts)*time.Microsecond:
		return fmt.Errorf("%d starts per %s: want at most one per microsecond", r.Starts, r.Per)
	case r.Per > MaxRatePer:
		return fmt.Errorf("a period of %s: want at most %s", r.Per, MaxRatePer)
	case r.Burst < 1:
		return fmt.Errorf("a burst of %d: want at least 1, the tasks that may start at once", r.Burst)
	case r.Burst > MaxRateBurst:
		return fmt.Errorf("a burst of %d: want at most %d", r.Burst, MaxRateBurst)
	}
	return nil
}

// Spacing returns the time between two starts, in whole microseconds; it is rounded up.
func (r Rate) Spacing() time.Duration {
	n := time.Duration(r.Starts)
	return (r.Per.Truncate(time.Microsecond) + n*time.Microsecond - time.Microsecond) / n / time.Microsecond * time.Microsecond
}

// The largest period and burst of a [Rate].
const (
	MaxRatePer   = 366 * 24 * time.Hour
	MaxRateBurst = 1_000_000
)
