package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config holds the settings of the protocol's chapter 9 and of the partner.
type Config struct {
	Enabled      bool            // OUTBOX_ENABLED
	Concurrency  int             // OUTBOX_CONCURRENCY: sends at once
	Batch        int             // OUTBOX_BATCH: rows of one claim
	PollInterval time.Duration   // OUTBOX_POLL_INTERVAL_SEC
	Lease        time.Duration   // OUTBOX_LOCK_LEASE_SEC
	MaxAttempts  int             // OUTBOX_MAX_ATTEMPTS
	Backoff      []time.Duration // OUTBOX_BACKOFF_SEC, a JSON list; the last one repeats
	Timeout      time.Duration   // BROKER_TIMEOUT_MS; 0: by time in force
	Adapter      string          // BROKER_ADAPTER: paper or http
	URL          string          // BROKER_URL
	Token        string          // BROKER_TOKEN
	TokenFile    string          // BROKER_TOKEN_FILE
	MaxAge       time.Duration   // ORDER_MAX_AGE; 0: by time in force
	RatePerMin   int             // ORDER_RATE_PER_MIN; 0: no limit
	// Instruments is ORDER_INSTRUMENTS, a JSON object {"BTC-JPY": {"min_qty": "0.001", "qty_step": "0.001"}};
	// nil allows all.
	Instruments map[string]Instrument
}

// DefaultConfig returns the defaults of the protocol.
func DefaultConfig() Config {
	return Config{
		Concurrency: 4, Batch: 32, PollInterval: 500 * time.Millisecond, Lease: 120 * time.Second, MaxAttempts: 6,
		Backoff:    []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second},
		RatePerMin: 60,
	}
}

// ConfigFromEnv reads the variables; getenv is os.Getenv as a rule. All mistakes are reported
// at once, each with its variable.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	c := DefaultConfig()
	r := envReader{getenv: getenv}
	r.text("OUTBOX_ENABLED", func(v string) (err error) { c.Enabled, err = strconv.ParseBool(v); return orForm(err, "true or false") })
	r.number("OUTBOX_CONCURRENCY", 1, 1000, &c.Concurrency)
	r.number("OUTBOX_BATCH", 1, 1000, &c.Batch)
	r.seconds("OUTBOX_POLL_INTERVAL_SEC", 10*time.Millisecond, time.Hour, &c.PollInterval)
	r.seconds("OUTBOX_LOCK_LEASE_SEC", 2*time.Second, 24*time.Hour, &c.Lease)
	r.number("OUTBOX_MAX_ATTEMPTS", 1, 1000, &c.MaxAttempts)
	r.text("OUTBOX_BACKOFF_SEC", func(v string) error {
		var list []float64
		if err := json.Unmarshal([]byte(v), &list); err != nil || len(list) == 0 {
			return errors.New("must be a JSON list of seconds, such as [5,10,20]")
		}
		c.Backoff = nil
		for _, s := range list {
			if s < 0 || s > 7*24*3600 {
				return fmt.Errorf("%v: must be between 0 and a week", s)
			}
			c.Backoff = append(c.Backoff, time.Duration(s*float64(time.Second)))
		}
		return nil
	})
	timeout := 0
	r.number("BROKER_TIMEOUT_MS", 1, 3600_000, &timeout)
	c.Timeout = time.Duration(timeout) * time.Millisecond
	r.text("BROKER_ADAPTER", func(v string) error {
		if v != "paper" && v != "http" {
			return fmt.Errorf("%q: must be paper or http", v)
		}
		c.Adapter = v
		return nil
	})
	c.URL, c.Token, c.TokenFile = getenv("BROKER_URL"), getenv("BROKER_TOKEN"), getenv("BROKER_TOKEN_FILE")
	if c.Token != "" && c.TokenFile != "" {
		r.errs = append(r.errs, errors.New("BROKER_TOKEN and BROKER_TOKEN_FILE: give one of them"))
	}
	r.text("ORDER_MAX_AGE", func(v string) (err error) {
		c.MaxAge, err = time.ParseDuration(v)
		if err == nil && c.MaxAge <= 0 {
			err = errors.New("must be positive")
		}
		return orForm(err, "a duration, such as 60s or 24h")
	})
	r.number("ORDER_RATE_PER_MIN", 0, 1_000_000, &c.RatePerMin)
	r.text("ORDER_INSTRUMENTS", func(v string) error {
		if err := json.Unmarshal([]byte(v), &c.Instruments); err != nil || c.Instruments == nil {
			return errors.New(`must be a JSON object, such as {"BTC-JPY": {"min_qty": "0.001", "qty_step": "0.001"}}`)
		}
		return nil
	})
	if c.Adapter == "http" && c.URL == "" {
		r.errs = append(r.errs, errors.New("BROKER_URL is missing: BROKER_ADAPTER=http needs it"))
	}
	return c, errors.Join(r.errs...)
}

// Orders returns the profile that the settings describe.
func (c *Config) Orders() Orders {
	return Orders{Instruments: c.Instruments, Timeout: c.Timeout, MaxAge: c.MaxAge}
}

// Webhooks returns the profile of webhooks that the settings describe.
func (c *Config) Webhooks() Webhooks { return Webhooks{Timeout: c.Timeout, MaxAge: c.MaxAge} }

// NewAdapter returns the adapter that the settings name. client, if it is given, sends the requests
// of the http adapter.
func (c *Config) NewAdapter(client ...*http.Client) (Adapter, error) {
	switch c.Adapter {
	case "paper":
		return &Paper{}, nil
	case "http":
		cfg := HTTPConfig{URL: c.URL, Token: c.tokens()}
		if len(client) > 0 {
			cfg.Client = client[0]
		}
		return NewHTTP(cfg)
	}
	return nil, errors.New("BROKER_ADAPTER is missing: paper, or http with BROKER_URL")
}

// tokens returns the function that reads the token, from its file anew each time.
func (c *Config) tokens() func() (string, error) {
	if c.TokenFile == "" {
		return func() (string, error) { return c.Token, nil }
	}
	return func() (string, error) {
		raw, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", fmt.Errorf("BROKER_TOKEN_FILE: %w", err)
		}
		return strings.TrimSpace(string(raw)), nil
	}
}

type envReader struct {
	getenv func(string) string
	errs   []error
}

func (r *envReader) text(name string, read func(string) error) {
	v := strings.TrimSpace(r.getenv(name))
	if v == "" {
		return
	}
	if err := read(v); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s=%s: %w", name, clip(v, 128), err))
	}
}

func (r *envReader) number(name string, least, most int, into *int) {
	r.text(name, func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		*into = n
		return nil
	})
}

func (r *envReader) seconds(name string, least, most time.Duration, into *time.Duration) {
	r.text(name, func(v string) error {
		s, err := strconv.ParseFloat(v, 64)
		if err != nil || !(s >= least.Seconds() && s <= most.Seconds()) {
			return fmt.Errorf("must be seconds from %v to %v", least.Seconds(), most.Seconds())
		}
		*into = time.Duration(s * float64(time.Second))
		return nil
	})
}

func orForm(err error, form string) error {
	if err != nil {
		return errors.New("must be " + form)
	}
	return nil
}
