// Package events has many readers follow all events of a namespace, over HTTP and in this process. Readers are cut
// off, and the serving and writing processes are killed.
package events
