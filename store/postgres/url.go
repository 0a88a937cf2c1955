package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// defaultSchema is the schema that holds the tables unless the URL names another.
const defaultSchema = "weaver"

// connectTimeout bounds a server's answer to a new connection, unless the URL says connect_timeout.
const connectTimeout = 10 * time.Second

// source is a parsed URL.
type source struct {
	config *pgx.ConnConfig
	pooled *pgxpool.Config // contains config; nil for a caller's pool
	sized  bool            // the URL sets the maximum number of connections
	schema string          // of the tables, as in the catalog
	shown  string          // the URL without passwords, for messages
}

// parseURL parses a URL as libpq does, postgres://USER:PASSWORD@HOST:PORT/DATABASE, and its
// parameter schema. Missing parts come from the PG… environment variables. An error never contains
// a password.
//
// search_path is not set as a connection parameter, which a pooler would reject: transactions set
// it.
func parseURL(raw string) (*source, error) {
	shown, secrets, err := showURL(raw)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.ParseConfig(raw)
	if err != nil {
		// Not wrapped: the driver's error contains the given URL.
		return nil, fmt.Errorf("the URL %s is wrong: %s", shown, reason(err, secrets))
	}
	config := pool.ConnConfig
	s := &source{config: config, pooled: pool, sized: strings.Contains(raw, "pool_max_conns="), schema: defaultSchema, shown: shown}
	if name, ok := config.RuntimeParams["schema"]; ok {
		delete(config.RuntimeParams, "schema")
		s.schema = name
	}
	if err := checkSchemaName(s.schema); err != nil {
		return nil, fmt.Errorf("the URL %s is wrong: %w", shown, err)
	}
	if _, ok := config.RuntimeParams["search_path"]; ok {
		return nil, fmt.Errorf("the URL %s is wrong: search_path has no effect: name the schema of the tables with schema=NAME", shown)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "weaver"
	}
	config.RuntimeParams["client_encoding"] = "UTF8" // overrides the user's and the database's setting
	if len(config.Fallbacks) > 0 && config.ValidateConnect == nil && strings.Contains(config.Host+hosts(config), ",") {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return s, nil
}

// hosts lists the additional hosts of a configuration, each preceded by a comma. A single host also
// has a fallback: itself without TLS.
func hosts(config *pgx.ConnConfig) (list string) {
	for _, f := range config.Fallbacks {
		if f.Host != config.Host || f.Port != config.Port {
			list += "," + f.Host
		}
	}
	return list
}

// example is the form of a URL.
const example = "postgres://USER:PASSWORD@HOST:PORT/DATABASE"

// escape is the advice for a password that ends a URL early.
const escape = "write it as " + example + ", with the special characters of a password escaped: @ is %40, / is %2F, : is %3A, ? is %3F, % is %25"

// showURL returns a URL without its passwords, and the passwords. It splits the URL as libpq does.
// No error contains text that may be part of a password.
func showURL(raw string) (shown string, secrets []string, err error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case raw == "":
		return "", nil, errors.New("no URL is given: write it as " + example)
	case !ok:
		return "", nil, errors.New("the URL has no scheme: write it as " + example)
	case scheme != "postgres" && scheme != "postgresql":
		return "", nil, fmt.Errorf("the URL begins with %.20q: Weaver needs %s", scheme+"://", example)
	case strings.ContainsRune(raw, 0) || !utf8.ValidString(raw):
		return "", nil, errors.New("the URL is not valid UTF-8 text: " + escape)
	}
	user, place := "", rest
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, place = rest[:i], rest[i+1:]
	}
	path, query, _ := strings.Cut(place, "?")
	if strings.Contains(path, "@") {
		return "", nil, errors.New("the URL has a misplaced @: " + escape)
	}
	name, password, has := strings.Cut(user, ":")
	if has {
		decoded, err := url.PathUnescape(password)
		if err != nil {
			return "", nil, errors.New("the URL has a password with an unescaped %: " + escape)
		}
		secrets = append(secrets, password, decoded)
		name += ":xxxxx"
	}
	if user != "" {
		name += "@"
	}
	shown = scheme + "://" + name + path
	var params []string
	for _, param := range strings.Split(query, "&") {
		key, value, has := strings.Cut(param, "=")
		switch {
		case query != "" && !has:
			return "", nil, errors.New("the URL has a parameter without a value behind its ?: " + escape)
		case strings.Contains(strings.ToLower(key), "password"):
			decoded, _ := url.PathUnescape(value) // an undecodable value is hidden as it stands
			secrets = append(secrets, value, decoded)
		case has:
			params = append(params, param)
		}
	}
	if len(params) > 0 {
		shown += "?" + strings.Join(params, "&")
	}
	return shown, secrets, nil
}

// reason returns the driver's message about a URL, without the URL and without passwords.
func reason(err error, secrets []string) string {
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "xxxxx")
		}
	}
	return text
}

// maxIdentifier is the maximum length of a PostgreSQL name in bytes.
const maxIdentifier = 63

// checkSchemaName returns an error if a schema's name is not usable.
func checkSchemaName(name string) error {
	switch {
	case name == "":
		return errors.New("schema is empty: leave it out for " + defaultSchema)
	case len(name) > maxIdentifier:
		return fmt.Errorf("schema=%.20s… has %d bytes: a name has at most %d", name, len(name), maxIdentifier)
	case strings.HasPrefix(name, "pg_") || name == "information_schema":
		return fmt.Errorf("schema=%s is PostgreSQL's own: name another", name)
	case strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return fmt.Errorf("schema=%q is not a valid name", name)
	}
	return nil
}

// searchPath returns the search_path in which the statements find the tables of a schema, and
// otherwise only PostgreSQL's own: temporary tables come last.
func searchPath(schema string) string {
	return pgx.Identifier{schema}.Sanitize() + ", pg_temp"
}
