package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/internal/typo"
)

// level is a mapping with a fixed set of keys.
type level struct {
	name    string            // "a task"
	keys    []string          // in the order of the documentation
	example string            // the way to write a key of this level
	others  map[string]string // keys of other tools, and ours for each
}

// optionKeys are the keys of options that hold one value.
var optionKeys = option.Keys(option.Pipeline)

var (
	pipelineLevel = &level{
		name:    "the pipeline",
		keys:    []string{"name", "description", "budget", "include", "retry", "timeout", "env", "inherit_env", "env_file", "secret_env", "dir", "labels", "params", "schedule", "max_parallel", "tasks", "on"},
		example: "KEY: …",
		others:  pipelineOthers,
	}
	includedLevel = &level{ // settings of its own tasks
		name:    "an included file",
		keys:    []string{"description", "retry", "timeout", "env", "inherit_env", "env_file", "secret_env", "dir", "labels", "tasks"},
		example: "KEY: …",
		others:  pipelineOthers,
	}
	pipelineOthers = map[string]string{
		"jobs": "tasks", "steps": "tasks", "stages": "tasks", "services": "tasks", "title": "name",
		"environment": "env", "cwd": "dir", "workdir": "dir", "working_dir": "dir", "working_directory": "dir", "directory": "dir", "tags": "labels", "limits": "budget",
		"dotenv": "env_file", "envfile": "env_file", "secret": "secret_env", "secrets": "secret_env",
		"retries": "retry", "attempts": "retry", "backoff": "retry", "timeout_minutes": "timeout", "timeout-minutes": "timeout", "deadline": "budget",
		"hooks": "on", "handlers": "on", "handleron": "on", "handler_on": "on", "on_failure": "on", "on_success": "on", "finally": "on", "notify": "on",
		"parameters": "params", "parameter": "params", "vars": "params", "variables": "params", "inputs": "params", "arguments": "params", "args": "params",
		"includes": "include", "import": "include", "imports": "include", "extends": "include", "uses": "include",
		"cron": "schedule", "schedules": "schedule", "when": "schedule", "every": "schedule",
		"concurrency": "max_parallel", "parallel": "max_parallel", "parallelism": "max_parallel", "max-parallel": "max_parallel", "max_active_tasks": "max_parallel",
	}
	scheduleLevel = &level{
		name:    "the schedule",
		keys:    []string{"cron", "timezone", "every", "overlap", "catch_up", "jitter"},
		example: "schedule: {KEY: …}",
		others:  map[string]string{"expression": "cron", "at": "cron", "tz": "timezone", "zone": "timezone", "time_zone": "timezone", "interval": "every", "concurrency": "overlap", "concurrency_policy": "overlap", "concurrencypolicy": "overlap", "catchup": "catch_up", "misfire": "catch_up", "splay": "jitter"},
	}
	paramLevel = &level{
		name:    "a param",
		keys:    []string{"type", "default", "choices", "description", "required"},
		example: "params: {day: {KEY: …}}",
		others:  map[string]string{"value": "default", "options": "choices", "enum": "choices", "values": "choices", "help": "description", "kind": "type"},
	}
	budgetLevel = &level{
		name:    "the budget",
		keys:    []string{"max_attempts_per_task", "max_total_attempts", "max_duration", "max_cost", "max_repairs", "max_no_progress"},
		example: "budget: {KEY: …}",
		others:  map[string]string{"max_attempts": "max_attempts_per_task", "attempts": "max_attempts_per_task", "retries": "max_attempts_per_task", "timeout": "max_duration", "duration": "max_duration"},
	}
	taskLevel = &level{
		name:    "a task",
		keys:    slices.Concat([]string{"description", "run", "http", "approve", "type", "input", "needs", "if", "allow_failure", "retry", "timeout", "env", "inherit_env", "env_file", "secret_env", "dir", "artifacts", "artifacts_optional", "artifacts_ttl", "labels", "concurrency"}, optionKeys, []string{"foreach", "foreach_glob", "foreach_from", "matrix", "max_parallel", "undo"}),
		example: "tasks: {build: {KEY: …}}",
		others:  taskOthers,
	}
	taskOthers = map[string]string{
		"command": "run", "cmd": "run", "script": "run", "shell": "run", "exec": "run", "args": "run",
		"depends_on": "needs", "dependson": "needs", "depends": "needs", "dependencies": "needs", "requires": "needs", "after": "needs", "need": "needs",
		"environment": "env", "cwd": "dir", "workdir": "dir", "working_dir": "dir", "working_directory": "dir", "working-directory": "dir", "directory": "dir",
		"dotenv": "env_file", "envfile": "env_file", "secret": "secret_env", "secrets": "secret_env",
		"artifact": "artifacts", "outputs": "artifacts", "files": "artifacts", "keep": "artifacts", "results": "artifacts", "optional_artifacts": "artifacts_optional", "artifacts-optional": "artifacts_optional", "ttl": "artifacts_ttl", "artifact_ttl": "artifacts_ttl", "expire_in": "artifacts_ttl", "retention": "artifacts_ttl", "retention-days": "artifacts_ttl",
		"retries": "retry", "attempts": "retry", "backoff": "retry", "with": "input", "uses": "type", "payload": "input", "tags": "labels",
		"when": "if", "condition": "if", "only_if": "if", "run_if": "if", "on": "if", "trigger_rule": "if",
		"continue_on_error": "allow_failure", "continue-on-error": "allow_failure", "ignore_error": "allow_failure", "ignore_errors": "allow_failure", "ignore_failure": "allow_failure", "allow-failure": "allow_failure", "allowfailure": "allow_failure", "may_fail": "allow_failure", "optional": "allow_failure",
		"with_items": "foreach", "for": "foreach", "for_each": "foreach", "for-each": "foreach", "loop": "foreach", "items": "foreach", "each": "foreach", "expand": "foreach",
		"glob": "foreach_glob", "with_fileglob": "foreach_glob", "foreach_file": "foreach_glob", "foreach_output": "foreach_from", "foreach_task": "foreach_from", "for_each_from": "foreach_from", "foreach-from": "foreach_from", "map_over": "foreach_from", "strategy": "matrix", "parallelism": "max_parallel", "max-parallel": "max_parallel", "parallel": "max_parallel", "max_active": "max_parallel",
		"parameters": "input", "inputs": "input", "vars": "env", "variables": "env",
		"request": "http", "curl": "http", "approval": "approve", "manual": "approve", "confirm": "approve", "prompt": "approve", "ask": "approve", "gate": "approve", "wait_for": "approve", "timeout_minutes": "timeout", "timeout-minutes": "timeout", "deadline": "timeout", "mutex": "concurrency", "lock": "concurrency",
		"compensate": "undo", "compensation": "undo", "rollback": "undo", "revert": "undo", "on_cancel": "undo",
	}
	onLevel = &level{
		name:    "on",
		keys:    []string{"success", "failure", "done"},
		example: "on: {KEY: {run: …}}",
		others:  map[string]string{"failed": "failure", "fail": "failure", "error": "failure", "ok": "success", "succeeded": "success", "always": "done", "finally": "done", "exit": "done", "ended": "done", "completion": "done", "completed": "done"},
	}
	hookLevel = &level{ // a task without needs
		name:    "a task of on",
		keys:    append([]string{"description", "run", "http", "type", "input", "allow_failure", "retry", "timeout", "env", "inherit_env", "env_file", "secret_env", "dir", "artifacts", "artifacts_optional", "artifacts_ttl", "labels", "concurrency"}, optionKeys...),
		example: "on: {failure: {KEY: …}}",
		others:  taskOthers,
	}
	undoLevel = &level{ // a hook without the settings that the undo phase fixes
		name:    "an undo",
		keys:    append([]string{"description", "run", "http", "type", "input", "timeout", "env", "inherit_env", "env_file", "secret_env", "dir", "labels", "concurrency"}, optionKeys...),
		example: "undo: {KEY: …}",
		others:  taskOthers,
	}
	approveLevel = &level{
		name:    "approve",
		keys:    []string{"message", "timeout"},
		example: "approve: {KEY: …}",
		others:  map[string]string{"text": "message", "question": "message", "prompt": "message", "title": "message", "description": "message", "deadline": "timeout", "expires": "timeout", "expire_after": "timeout"},
	}
	httpLevel = &level{
		name:    "http",
		keys:    []string{"method", "url", "headers", "headers_env", "json", "body", "expect", "until", "timeout", "max_redirects"},
		example: "http: {KEY: …}",
		others:  map[string]string{"uri": "url", "verb": "method", "header": "headers", "header_env": "headers_env", "env_headers": "headers_env", "secret_env": "headers_env", "secrets": "headers_env", "data": "body", "payload": "json", "status": "expect", "statuses": "expect", "expected": "expect", "redirects": "max_redirects", "poll": "until", "wait_until": "until", "wait_for": "until", "retry_until": "until"},
	}
	untilLevel = &level{
		name:    "until",
		keys:    []string{"status", "json", "equals", "not", "in", "every", "timeout"},
		example: "http: {until: {KEY: …}}",
		others:  map[string]string{"path": "json", "jsonpath": "json", "field": "json", "body": "json", "is": "equals", "equal": "equals", "value": "equals", "eq": "equals", "not_equals": "not", "any": "in", "one_of": "in", "interval": "every", "delay": "every", "pause": "every", "statuses": "status", "code": "status", "expect": "status", "limit": "timeout", "deadline": "timeout"},
	}
	retryLevel = &level{
		name:    "retry",
		keys:    []string{"max_attempts", "base", "max"},
		example: "retry: {KEY: …}",
		others: map[string]string{
			"attempts": "max_attempts", "limit": "max_attempts", "count": "max_attempts", "times": "max_attempts", "max_retries": "max_attempts", "retries": "max_attempts",
			"delay": "base", "backoff": "base", "wait": "base", "interval": "base", "initial": "base", "min": "base", "max_delay": "max", "max_backoff": "max", "backoff_max": "max", "cap": "max",
		},
	}
	concurrencyLevel = &level{
		name:    "concurrency",
		keys:    []string{"key", "limit"},
		example: "concurrency: {KEY: …}",
		others:  map[string]string{"group": "key", "name": "key", "max": "limit"},
	}
	levels = []*level{pipelineLevel, taskLevel, httpLevel, untilLevel, approveLevel, onLevel, retryLevel, concurrencyLevel, budgetLevel, paramLevel, scheduleLevel}
)

// adviseKey suggests a correction for a key unknown to a level.
func adviseKey(key string, at *level) string {
	if why := notOfUndo[key]; why != "" && at == undoLevel {
		return why
	}
	known, other := at.guess(key)
	switch {
	case other != nil:
		return fmt.Sprintf("%q belongs to %s: %s", key, other.name, strings.Replace(other.example, "KEY", key, 1))
	case known != "":
		return fmt.Sprintf("did you mean %q?", known)
	}
	return fmt.Sprintf("the keys of %s are %s", at.name, strings.Join(at.keys, ", "))
}

// guess returns the most similar key of the level, or another level that has the
// key.
func (l *level) guess(key string) (known string, other *level) {
	lower := strings.ToLower(key)
	if slices.Contains(l.keys, lower) {
		return lower, nil
	}
	if known := l.others[lower]; known != "" {
		return known, nil
	}
	for _, other := range levels {
		if other != l && slices.Contains(other.keys, key) {
			return "", other
		}
	}
	return nearest(lower, l.keys), nil
}

// lacks reports whether a mapping has neither one of the keys nor an unknown key
// similar to one: the latter was reported.
func (l *level) lacks(m *node, keys ...string) bool {
	for _, e := range m.entries {
		name := e.name
		if !slices.Contains(l.keys, name) {
			name, _ = l.guess(name)
		}
		if slices.Contains(keys, name) {
			return false
		}
	}
	return true
}

// adviseName suggests a similar name, or lists the names.
func adviseName(name string, known []string) string {
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	const few = 8
	shown := make([]string, 0, few)
	for _, k := range known[:min(len(known), few)] {
		shown = append(shown, quote(k))
	}
	if len(known) > few {
		return fmt.Sprintf("the tasks are %s and %d more", strings.Join(shown, ", "), len(known)-few)
	}
	return "the tasks are " + strings.Join(shown, ", ")
}

// nearest returns the most similar word at an edit distance of at most 2 (less for
// short words), or "".
func nearest(word string, known []string) string {
	limit := min(2, len(word)/2)
	best := ""
	for _, k := range known {
		if strings.EqualFold(word, k) {
			return k
		}
		if d := typo.Distance(word, k, limit); d <= limit && (best == "" || d < typo.Distance(word, best, limit)) {
			best = k
		}
		if best == "" && len(word) > 2 && strings.HasPrefix(k, word) {
			best = k
		}
	}
	return best
}
