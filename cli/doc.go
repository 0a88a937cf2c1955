// Package cli is the weaver command as a package, so that a program with its own task types can be the same command:
//
//	func main() { cli.Main(cli.App{Name: "acme", Handlers: handlers}) }
//
// The verbs run, submit and worker do work: pipelines from files, the task types of package builtin, and those of the
// program. check and graph read pipeline files and no store. The other verbs read a store and operate it for people:
// they list, show and explain tasks and jobs, retry, cancel and unblock them, pause queues, migrate and check the
// store.
//
// Invariants:
//
//   - Verbs that do no work and do not migrate never create a store: a missing file
//     is an error, not an empty list.
//   - Results go to the standard output, everything else to the standard error.
//     With -o json a result is one JSON object with the field names of package task;
//     run, worker and logs print a stream of objects, one per line. The error of a
//     failed verb is then one JSON object too, in one line of the standard error:
//     {"error": TEXT, "advice": TEXT, "exit_code": N}, with the "mistakes" of a
//     pipeline file.
//   - Text is for people: colours appear only on a terminal, and control characters
//     of recorded texts never reach it. Only logs of a single task prints the output
//     bytes of a command unchanged.
//   - The exit code is 0 on success, 1 if the work failed or doctor found violations,
//     2 if the command line or an object that it names is wrong, and 3 if the store
//     cannot be used.
package cli
