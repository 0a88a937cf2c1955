// Package events has many readers follow all that happens in a namespace, over HTTP and
// in this process, while they are cut and the processes that serve and write are killed.
package events
