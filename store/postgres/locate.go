package postgres

import (
	"fmt"
	"net"
)

// Location is what a URL names. To know it takes no connection.
type Location struct{ src *source }

// Locate reads a URL as Open does, and connects to nothing. An error says what is wrong
// with the URL, and shows no password.
func Locate(url string) (Location, error) {
	src, err := parseURL(url)
	return Location{src}, err
}

// String returns the URL without its passwords, as messages have it.
func (l Location) String() string { return l.src.shown }

// Schema returns the name of the schema that holds the tables.
func (l Location) Schema() string { return l.src.schema }

// Place returns the host or the folder of the socket, the port, the database and the
// schema, with slashes between them: the same for every user of the store that names
// its server the same way. Of several hosts it is the first.
func (l Location) Place() string {
	c := l.src.config
	database := c.Database
	if database == "" {
		database = c.User // as the server takes it
	}
	return fmt.Sprintf("%s/%s/%s", net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), database, l.src.schema)
}

// MigrationSQL returns the whole schema as a script, as DB.MigrationSQL does.
func (l Location) MigrationSQL() string { return migrationSQL(l.src.schema) }
