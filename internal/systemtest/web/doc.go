// Package web drives the dashboard in Chromium: pages, accessibility, mounting, tabs, reconnects, the login, and texts
// of users. A page fails its test with an error in its console, an unhandled exception or rejection, a violation of its
// Content-Security-Policy, or a request to another host.
package web
