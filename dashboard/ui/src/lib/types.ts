// The JSON of the API, as far as the pages read it. /openapi.json is the reference.
import type { Count } from "./format";

export interface TaskError {
  kind: string;
  message: string;
  code?: string;
  step?: string;
  stack?: string;
  ask?: string;
  ask_shape?: string;
  ask_until?: string;
}

export interface Task {
  id: string;
  job_id?: string;
  parent_task_id?: string;
  rerun_of?: string;
  undo_of?: string;
  node?: string;
  task_type: string;
  queue: string;
  priority: number;
  state: string;
  waiting_reason?: string;
  pause?: string;
  ready_at?: string;
  remaining_deps: number;
  values_dropped?: boolean;
  forgotten?: boolean;
  input?: unknown;
  output?: unknown;
  unblock_input?: unknown;
  error?: TaskError;
  progress?: { current: number; total?: number; message?: string };
  schema_version: number;
  step_count: number;
  attempt_no: number;
  attempt_count: number;
  max_attempts: number;
  crash_count: number;
  repair_count: number;
  max_repairs: number;
  cost?: number;
  max_cost?: number;
  backoff_ns: number;
  backoff_max_ns: number;
  timeout_ns?: number;
  idempotency_key?: string;
  concurrency_key?: string;
  concurrency_limit?: number;
  labels?: Record<string, string>;
  metadata?: Record<string, string>;
  cancel_requested?: boolean;
  cancel_kind?: string;
  cancel_by?: string;
  cancel_reason?: string;
  leased_by?: string;
  lease_epoch: number;
  lease_expires_at?: string;
  undo_open?: number;
  undo?: { state?: string; [name: string]: unknown };
  deadline_at?: string;
  created_at: string;
  updated_at: string;
  started_at?: string;
  finished_at?: string;
  payloads_hidden?: boolean;
}

export interface Found {
  items: Task[];
  scanned: number;
  unread?: number;
  oldest_seen?: string;
  next?: string;
}

export interface Page<T> {
  items: T[];
  next?: string;
}

export interface List<T> {
  items: T[];
}

export interface AuditEntry {
  id?: string;
  actor: string;
  verb: string;
  target?: string;
  reason?: string;
  at: string;
  [name: string]: unknown;
}

export interface Queue {
  queue: string;
  task_type?: string;
  due: Count;
  later: Count;
  oldest_due?: string;
  running: Count;
  paused: boolean;
  pause?: AuditEntry;
}

export interface Worker {
  worker_id: string;
  name: string;
  ttl_ns: number;
  task_types: string[];
  host?: string;
  pid?: number;
  version?: string;
  slots: number;
  last_seen: string;
  running: Count;
  dead?: boolean;
  silent?: boolean;
  [name: string]: unknown;
}

export interface Times {
  p50_ns: number;
  p90_ns: number;
  p95_ns: number;
  p99_ns: number;
  mean_ns: number;
}

export interface StatsRow {
  from: string;
  task_type?: string;
  queue?: string;
  outcome?: string;
  error_kind?: string;
  worker?: string;
  count: number;
  run: Times;
  wait: Times;
}

export interface Stats {
  from: string;
  to: string;
  step_ns: number;
  rows: StatsRow[];
}

export interface Job {
  id: string;
  name: string;
  state: string;
  counters: { total: number; unfinished: number; movable: number; failed: number; allowed: number; succeeded: number };
  created_at: string;
  updated_at: string;
  finished_at?: string;
  meta?: Record<string, string>;
  [name: string]: unknown;
}

export interface Action {
  command?: string;
  effect?: string;
  [name: string]: unknown;
}
