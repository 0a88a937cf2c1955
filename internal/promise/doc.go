// Package promise calls JavaScript from Go in a browser: it waits for promises and turns exceptions into errors. It is
// empty on other systems.
package promise
