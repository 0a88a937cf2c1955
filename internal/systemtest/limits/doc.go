// Package limits starts tasks with rates and a queue with a limit of running tasks in several processes, which are
// killed, while the limit is raised and lowered. No window of a key's period has more starts than its rate and burst, and
// never do more tasks of the queue run than its limit allows.
package limits
