// Package option is the table of the options of a task. A row says the name of an option,
// the values that it takes, where it may be given and where it is shown; weaver's option
// functions, plain drafts, announced defaults, HTTP requests, pipelines and `weaver task
// show` follow it.
//
// A struct that carries options, such as [task.Draft], has a field of the option's name.
// [Copy] and [Given] find it by that name. Both use reflection; functions such as
// weaver.Timeout do not.
package option
