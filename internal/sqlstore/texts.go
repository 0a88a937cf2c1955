package sqlstore

import "fmt"

// The rest of this file is for the tests of the stores, which check every statement of the
// source. It has the texts that the source does not spell out.

// ColumnLists holds the generated lists in statements by the names of their tables, and the
// generated statements by their names.
var ColumnLists = map[string]string{
	"taskColumns": taskColumns.List(), "DependentColumns": DependentColumns.List(), "workerColumns": workerColumns.List(), "retryNeedColumns": retryNeedColumns.List(), "dependentEdges": dependentEdges.List(), "candidateColumns": candidateColumns.List(), "HintedSelect": HintedSelect, "freshColumns": freshColumns.List(),
	"leaseColumns": leaseColumns.List(), "taskRowColumns": taskRowColumns.List(), "targetColumns": targetColumns.List(), "jobColumns": jobColumns.List(),
	"stepColumns": stepColumns.List(), "attemptColumns": attemptColumns.List(), "decisionColumns": decisionColumns.List(),
	"auditColumns": auditColumns.List(), "claimColumns": claimColumns.List(), "edgeColumns": edgeColumns.List(),
	"dispatchColumns": dispatchColumns.List(), "keyColumns": keyColumns.List(), "waiterColumns": waiterColumns.List(), "choreColumns": choreColumns.List(), "summandColumns": summandColumns.List(),
	"neededColumns": neededColumns.List(), "undoingColumns": undoingColumns.List(), "signalColumns": signalColumns.List(), "checkpointColumns": checkpointColumns.List(), "eventColumns": eventColumns.List(), "feedColumns": feedColumns.List(), "pausedTaskColumns": pausedTaskColumns.List(),
	"statusColumns": statusColumns.List(), "artifactColumns": artifactColumns.List(), "blobColumns": blobColumns.List(), "retainedJobColumns": retainedJobColumns.List(), "retainedTaskColumns": retainedTaskColumns.List(), "labelledTaskColumns": labelledTaskColumns.List(),
	"typeColumns": typeColumns.List(), "statColumns": statColumns.List(),
	"limitColumns": limitColumns.List(), "scheduleColumns": scheduleColumns.List(), "fireColumns": fireColumns.List(),
	"orderColumns": orderColumns.List(), "OrderSelect": OrderSelect, "ledgerColumns": ledgerColumns.List(), "sqlLockOrders": sqlLockOrders,
	"sqlInsertLedger": sqlInsertLedger, "sqlInsertOrder": sqlInsertOrder, "sqlUpdateLedger": sqlUpdateLedger, "sqlUpdateOrder": sqlUpdateOrder,
	"sqlEnd": sqlEnd, "sqlCancelledBy": sqlCancelledBy, "sqlRevive": sqlRevive, "sqlUnblock": sqlUnblock, "sqlAudit": sqlAudit, "sqlInsertTask": sqlInsertTask, "sqlClaimTask": sqlClaimTask, "sqlTransition": sqlTransition, "sqlInsertAttempt": sqlInsertAttempt, "sqlInsertDecision": sqlInsertDecision,
}

// Chunks returns the statements that write a chunk of rows, by name and number of rows, and
// the statements that remove a task.
func Chunks() map[string]string {
	all := make(map[string]string)
	for name, sqls := range map[string]chunkSQL{
		"read tasks": sqlReadTasks, "stand": sqlStand, "stored": sqlStored, "task states": sqlTaskStates, "running lanes": sqlRunningLanes, "payloads": sqlPayloads, "claim many": sqlClaimMany, "undispatch many": sqlUndispatchMany, "held tasks": sqlHeldTasks, "await": sqlAwait, "succeed": sqlSucceed,
		"insert attempts": sqlInsertAttempts, "steps guard": sqlStepsGuard, "insert steps": sqlInsertSteps, "insert events": sqlInsertEvents, "insert logs": sqlInsertLogs, "feed quotes": sqlFeedQuotes,
		"hinted": sqlHinted, "lock sent": sqlLockSent, "mark sent": sqlMarkSent, "set sent": sqlSetSent,
		"retained tasks": sqlRetainedTasks, "erase tasks": sqlEraseTasks,
	} {
		for n, sql := range sqls {
			all[fmt.Sprint(name, " ", n)] = sql
		}
	}
	for _, table := range recordTables {
		if table.erase != nil {
			for n, sql := range table.erase {
				all[fmt.Sprint("erase ", table.rows, n)] = sql
			}
		}
	}
	all["sqlRecordsBetween"] = sqlRecordsBetween
	for i, sql := range sqlDelete {
		all[fmt.Sprint("sqlDelete ", i)] = sql
	}
	return all
}
