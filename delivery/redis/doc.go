// Package redis is a delivery.Transport through Redis 7 or later, or Valkey: hints between processes.
//
// Redis holds task IDs and nothing else. All of it may be lost at any time (FLUSHALL, eviction, a restart without
// persistence) and costs latency only. All keys of a namespace have one hash tag, so they are in one slot of a cluster:
//
//	{weaver:NAMESPACE}:hints:QUEUE:TYPE  list of task IDs, at most Options.MaxPerLane
//	{weaver:NAMESPACE}:queues:TYPE       sorted set of the queues of a type, for workers that serve every queue
//	{weaver:NAMESPACE}:news:TYPE         list with an element for each queue that was added to the set lately
//
// Every key expires five minutes after its last push. A key of another type under one of these names is deleted, and an
// element that is not a task ID is dropped; Stats counts both. The user of Redis needs the ACL rules
// "~{weaver:* +@list +@sortedset +@connection +expire +unlink +type", and "+cluster|slots" for a cluster.
package redis
