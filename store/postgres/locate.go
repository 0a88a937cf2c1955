package postgres

import (
	"fmt"
	"net"
)

// Location is the place that a URL names. It is known without a connection.
type Location struct{ src *source }

// Locate parses a URL as Open does, without a connection. Its error contains no password.
func Locate(url string) (Location, error) {
	src, err := parseURL(url)
	return Location{src}, err
}

// String returns the URL without its passwords, as in messages.
func (l Location) String() string { return l.src.shown }

// Schema returns the name of the schema that holds the tables.
func (l Location) Schema() string { return l.src.schema }

// Place returns the host or the folder of the socket, the port, the database and the schema,
// separated by slashes. It is equal for all URLs that name the server the same way. If the URL has
// several hosts it contains the first.
func (l Location) Place() string {
	c := l.src.config
	database := c.Database
	if database == "" {
		database = c.User // the server's default
	}
	return fmt.Sprintf("%s/%s/%s", net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), database, l.src.schema)
}

// MigrationSQL returns the whole schema as a script, as DB.MigrationSQL does.
func (l Location) MigrationSQL() string { return migrationSQL(l.src.schema) }
