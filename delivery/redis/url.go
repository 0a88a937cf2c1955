package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// Schemes are the URL schemes that Open understands.
var Schemes = []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "unix"}

// target is the content of a URL.
type target struct {
	network string // "tcp" or "unix"
	prefix  string
	option  rueidis.ClientOption
}

// addr returns the addresses for messages.
func (t target) addr() string { return strings.Join(t.option.InitAddress, ", ") }

var errURL = errors.New(`the URL of Redis cannot be parsed; write redis://USER:PASSWORD@HOST:PORT/DATABASE, with % escapes for special characters of the password`)

// parse reads a URL. Its errors never hold parts of the URL that may be a password.
func parse(text string) (target, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return target{}, fmt.Errorf("the URL of Redis has no scheme; it begins with %s", choices())
	}
	if !slices.Contains(Schemes, scheme) {
		return target{}, fmt.Errorf("the URL of Redis has the unknown scheme %q; use %s", scheme, choices())
	}
	// The hosts may be a list, which net/url refuses.
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	if strings.Contains(path, "@") {
		return target{}, errURL // most likely the rest of a password
	}
	u, err := url.Parse("redis://" + user + "hosts" + path)
	if err != nil || u.Fragment != "" {
		return target{}, errURL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return target{}, errURL
	}
	t := target{network: "tcp", prefix: "weaver"}
	t.option.Username = u.User.Username()
	t.option.Password, _ = u.User.Password()
	if strings.HasPrefix(scheme, "rediss") {
		t.option.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	database := strings.Trim(u.Path, "/")
	port := "6379"
	switch {
	case scheme == "unix":
		if hosts != "" || database == "" {
			return target{}, errors.New("the URL of a Redis socket has the form unix:///path/to/redis.sock?db=0")
		}
		t.network, t.option.InitAddress, database = "unix", []string{u.Path}, ""
	case strings.HasSuffix(scheme, "+sentinel"):
		port = "26379"
		var set string
		set, database, _ = strings.Cut(database, "/")
		if set == "" {
			return target{}, fmt.Errorf("the URL of a Redis Sentinel names the master set: %s://HOST:%s,HOST2:%s/MASTER", scheme, port, port)
		}
		t.option.Sentinel.MasterSet = set
		t.option.Sentinel.TLSConfig = t.option.TLSConfig
	}
	if t.network == "tcp" {
		if t.option.InitAddress, err = addresses(hosts, port); err != nil {
			return target{}, err
		}
	}
	if err := t.parameters(query, &database); err != nil {
		return target{}, err
	}
	if database != "" {
		n, err := strconv.Atoi(database)
		if err != nil || n < 0 {
			return target{}, errors.New("the URL of Redis: the database is not a number; write redis://HOST:6379/0")
		}
		t.option.SelectDB = n
	}
	return t, nil
}

// parameters reads the part after the question mark.
func (t *target) parameters(query url.Values, database *string) error {
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "db":
			*database = value
		case "prefix":
			t.prefix = value
		case "sentinel_user":
			t.option.Sentinel.Username = value
		case "sentinel_password":
			t.option.Sentinel.Password = value
		default:
			return fmt.Errorf("the URL of Redis has the unknown parameter %q; known are db, prefix, sentinel_user and sentinel_password", name)
		}
	}
	return nil
}

// addresses returns the addresses of a comma-separated list.
func addresses(hosts, port string) ([]string, error) {
	var list []string
	for host := range strings.SplitSeq(hosts, ",") {
		name, number := host, port
		if h, p, err := net.SplitHostPort(host); err == nil {
			name, number = h, p
		} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
			name = host[1 : len(host)-1]
		} else if strings.Contains(host, ":") {
			return nil, errURL
		}
		if name == "" {
			name = "localhost"
		}
		if n, err := strconv.Atoi(number); err != nil || n < 1 || n > 65535 {
			return nil, errURL // the "port" of an unescaped password
		}
		list = append(list, net.JoinHostPort(name, number))
	}
	return list, nil
}

func choices() string {
	forms := make([]string, len(Schemes))
	for i, s := range Schemes {
		forms[i] = s + "://"
	}
	return strings.Join(forms[:len(forms)-1], ", ") + " or " + forms[len(forms)-1]
}
