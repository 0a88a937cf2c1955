// Package crossing has many processes, as far as a database can tell them apart, write
// the same few tasks of one PostgreSQL at once, and then checks all rows.
package crossing
