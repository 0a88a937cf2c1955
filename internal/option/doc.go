// Package option is the table of the options of a task. A row holds the name of an option, its
// values, the places that accept it, and the places that show it. weaver's option functions,
// plain drafts, announced defaults, HTTP requests, pipelines and `weaver task show` follow the
// table.
//
// A struct that carries options, such as [task.Draft], has a field with the option's name.
// [Copy] and [Given] find it by that name. Both use reflection; functions such as
// weaver.Timeout do not.
package option
