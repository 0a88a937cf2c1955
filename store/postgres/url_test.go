package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store/postgres"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	src := parse(t, "postgres://app:s%40cret@db.example:5433/shop?schema=looms&sslmode=disable&password=other")
	if c := src.Config(); src.Schema() != "looms" || c.Host != "db.example" || c.Port != 5433 || c.User != "app" || c.Database != "shop" ||
		c.RuntimeParams["schema"] != "" || c.RuntimeParams["application_name"] != "weaver" || c.ConnectTimeout != 10*time.Second {
		t.Errorf("%q: schema %q, %+v", src.Shown(), src.Schema(), c)
	}
	if got, want := src.Shown(), "postgres://app:xxxxx@db.example:5433/shop?schema=looms&sslmode=disable"; got != want {
		t.Errorf("it is shown as %q, want %q", got, want)
	}
	src = parse(t, "postgresql://one,two:5433/shop?connect_timeout=3&application_name=mine")
	if c := src.Config(); src.Schema() != "weaver" || c.ConnectTimeout != 3*time.Second || c.RuntimeParams["application_name"] != "mine" || c.ValidateConnect == nil {
		t.Errorf("%q: schema %q, %+v", src.Shown(), src.Schema(), c)
	}
	if c := parse(t, "postgres://one/shop?sslmode=prefer").Config(); c.ValidateConnect != nil || len(c.Fallbacks) == 0 {
		t.Errorf("one host with a fallback looks for one that can be written: %+v", c)
	}
}

// The error of a wrong URL is one line without a password.
func TestBadURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                                                 "no URL is given: write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE",
		"host=db user=app password=hidden":                                 "the URL has no scheme",
		"mysql://app:hidden@db/shop":                                       `the URL begins with "mysql://": Weaver needs postgres://`,
		"Postgres://app:hidden@db/shop":                                    `the URL begins with "Postgres://"`,
		"postgres://app:hi/dden@db/shop":                                   "the URL has a misplaced @: write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the special characters of a password escaped",
		"postgres://app:hidden@dden@db/shop":                               "the URL has a misplaced @",
		"postgres://app:hid%zzden@db/shop":                                 "the URL has a password with an unescaped %",
		"postgres://app:hidden@db:port/shop":                               "the URL postgres://app:xxxxx@db:port/shop is wrong: invalid port",
		"postgres://app:hidden@db:0/shop":                                  "is wrong: invalid port",
		"postgres://app:hidden@db/shop?hidden":                             "the URL has a parameter without a value",
		"postgres://app:hidden@db/shop?sslmode=so":                         "the URL postgres://app:xxxxx@db/shop?sslmode=so is wrong: ",
		"postgres://db/shop?password=hidden&connect_timeout=soon":          "the URL postgres://db/shop?connect_timeout=soon is wrong: invalid connect_timeout",
		"postgres://app:hidden@db/shop?schema=":                            "schema is empty: leave it out for weaver",
		"postgres://app:hidden@db/shop?schema=pg_catalog":                  "schema=pg_catalog is PostgreSQL's own",
		"postgres://app:hidden@db/shop?schema=information_schema":          "PostgreSQL's own",
		"postgres://app:hidden@db/shop?schema=ä" + strings.Repeat("e", 62): "has 64 bytes: a name has at most 63",
		"postgres://app:hidden@db/shop?search_path=looms":                  "search_path has no effect: name the schema of the tables with schema=NAME",
		"postgres://app:hidden@db/shop\x00":                                "the URL is not valid UTF-8 text",
		"postgres://app:hidden@[::1/shop":                                  "is wrong: ",
		"postgres://app:hidden@db/shop?sslrootcert=/hidden/nowhere/x":      "is wrong: ",
	} {
		_, err := postgres.ParseURL(url)
		says(t, err, nil, want)
		if err != nil && strings.Contains(err.Error(), "dden") && !strings.Contains(url, "/hidden/") {
			t.Errorf("%q: the error has a piece of the password: %v", url, err)
		}
	}
}

// No error and no shown URL contains a password.
func FuzzParseURL(f *testing.F) {
	f.Add("secret", "db", "schema=x")
	f.Add("sec/ret", "db:1,other", "sslmode=disable")
	f.Add("sec@ret", "[::1]:5", "password=secret")
	f.Add("sec?ret", "", "")
	f.Add("sec#ret%", "h", "a&b")
	f.Fuzz(func(t *testing.T, password, host, query string) {
		const mark = "Xq9"
		if strings.Contains(host+query, mark) {
			return
		}
		url := "postgres://app:" + mark + password + mark + "@" + host + "/shop?" + query
		src, err := postgres.ParseURL(url)
		if err != nil {
			if strings.Contains(err.Error(), mark) {
				t.Errorf("%q: %v", url, err)
			}
			return
		}
		if strings.Contains(src.Shown(), mark) || src.Schema() == "" {
			t.Errorf("%q is shown as %q, with the schema %q", url, src.Shown(), src.Schema())
		}
	})
}
