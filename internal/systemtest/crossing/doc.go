// Package crossing has many processes write the same few tasks of one PostgreSQL at once, and then checks all rows.
package crossing
