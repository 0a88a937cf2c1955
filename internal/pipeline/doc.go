// Package pipeline reads pipeline files (YAML), reports every mistake with its
// place and a correction before anything is stored, and turns a valid file into a
// weaver.Job of builtin or other task types.
//
// A file is untrusted text: Parse never panics, and MaxSize and the limits of
// yaml_guard.go bound its time and memory. Job turns every file that Parse accepts
// into a valid job, unless a foreach without values leaves it without tasks.
//
// The package opens no other file and runs nothing. Its caller supplies included
// files and the matches of a foreach_glob ([Given]).
//
// A file passes through these steps, one prefix of file names each:
//
//	parse.go     Parse: the steps in order
//	yaml_*       text → tokens with places → guards for the YAML parser → tree of nodes
//	decode*      tree → Pipeline: a file per key (decode_each.go: foreach and matrix; decode_fill.go: params and item)
//	problem*     mistakes: collecting, sorting, printing with the line of the source
//	job*         Pipeline → weaver.Job, digest, update of an earlier job, summaries
//	graph.go     Pipeline → needs to wait for, and needs to draw
//
// The steps are one Go package: the nodes, places and problems of the YAML layer alone
// would be more than 40 exported names.
//
// The rest of the tree:
//
//	value        {{…}} of needs and items in texts: which there are, and their values
//	template     the syntax of {{…}}
//	dag          levels and drawings of a graph
//	view         the view of a running job in a terminal
//
// Package builtin has the task types that run commands and requests; it uses value
// and template when a task runs.
package pipeline
