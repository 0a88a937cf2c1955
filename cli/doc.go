// Package cli is the whole weaver command as a package, so that a program
// with task types of its own can be the same command:
//
//	func main() { cli.Main(cli.App{Name: "acme", Handlers: handlers}) }
//
// The verbs run, submit and worker do work: pipelines from files, the task
// types of package builtin, and those of the program. check and graph read files
// of pipelines and no store. The others read a store
// and act on it for people: they list, show and explain tasks and jobs, retry,
// cancel and unblock them, pause queues, migrate and check the store.
//
// What always holds:
//
//   - Verbs that do no work and do not migrate never create a store: a file
//     that is not there is an error, not an empty list.
//   - Results go to the standard output, everything else to the standard
//     error. With -o json a result is one JSON object with the field names of
//     package task; run, worker and logs print a stream of them, one per line.
//     The error of a verb that fails is then one JSON object too, in one line of the
//     standard error: {"error": TEXT, "advice": TEXT, "exit_code": N}, with the
//     "mistakes" of a pipeline's file.
//   - Text is for people: colours only on a terminal, control characters of
//     recorded texts never reach it. Only logs of one task prints the bytes that
//     a command wrote as they are.
//   - The exit code is 0 when it is done, 1 when the work failed or doctor
//     found violations, 2 when the command line or what it names is wrong, and
//     3 when the store cannot be used.
package cli
