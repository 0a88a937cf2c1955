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
  task_types: string[] | null; // null: it only sends orders
  host?: string;
  pid?: number;
  version?: string;
  slots?: number; // missing: as above
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

// The records of a task.

export interface ActionRequest {
  method: string;
  path: string;
  body?: Record<string, unknown>;
  input?: string; // the body's field for the value that a person enters
}

export interface WhyAction {
  verb: string;
  target: { kind: string; id: string };
  needs_input?: boolean;
  args?: Record<string, unknown>;
  command: string;
  effect: string;
  request?: ActionRequest;
}

export interface Cause {
  kind: string;
  task_id?: string;
  state?: string;
  sentence: string;
  because?: Cause[];
}

export interface Explanation {
  title: string;
  kind: string;
  id: string;
  job_id?: string;
  name?: string;
  task_type?: string;
  state: string;
  waiting_reason?: string;
  summary: string;
  root_cause?: string;
  until?: string;
  start?: { earliest?: string; latest?: string; per_minute?: number; ahead?: Count; reason?: string };
  because?: Cause[];
  past?: { at: string; sentence: string }[];
  notes?: string[];
  actions: WhyAction[];
}

export interface Attempt {
  attempt_no: number;
  lease_epoch: number;
  worker: string;
  code_version: number;
  handler?: string;
  handler_reason?: string;
  started_at: string;
  finished_at?: string;
  outcome?: string;
  error?: TaskError;
  notes?: Record<string, unknown>;
  steps_run?: string[];
  steps_unreached?: string[];
}

export interface Decision {
  attempt_no: number;
  decided_at: string;
  kind: string;
  next_ready_at?: string;
  child_task_ids?: string[];
  reason: { policy: string; version: number; text: string; evidence?: Record<string, unknown>; change?: string };
}

export interface Step {
  name: string;
  index: number;
  kind: string;
  state: string;
  try: number;
  attempt_no: number;
  round?: number;
  undo?: string;
  undo_no?: number;
  signal?: string;
  started_at?: string;
  completed_at?: string;
  wake_at?: string;
  cost?: number;
  error?: TaskError;
  value?: unknown;
  children?: number;
  children_stored?: number;
  children_left?: number;
}

export interface Signal {
  seq: number;
  name: string;
  key: string;
  payload?: unknown;
  sent_at: string;
  step?: string;
  actor?: string;
}

export interface Artifact {
  artifact_id: string;
  task_id: string;
  name: string;
  content_type?: string;
  attempt_no: number;
  step?: string;
  blob?: { size?: number; [name: string]: unknown };
  link?: unknown;
  created_at: string;
  expires_at?: string;
}

export interface Need {
  id: string;
  node?: string;
  kind: string;
  state: string;
  done: boolean;
  allow_failure?: boolean;
  error_kind?: string;
  awaited?: number;
  step?: string;
  ended_state?: string;
  ended_error?: TaskError;
}

export interface History {
  task: Task;
  attempts: Attempt[];
  decisions: Decision[];
  steps: Step[];
  signals: Signal[];
  checkpoints: { name: string; attempt_no: number; saved_at: string; value?: unknown }[];
  artifacts: Artifact[];
  needs: Need[];
  dependents: Need[];
  audit: AuditEntry[];
  key_holders?: string[];
  key_ahead?: string;
  task_pause?: AuditEntry;
  type_pause?: AuditEntry;
  queue_pause?: AuditEntry;
}

export interface UndoEffect {
  step: string;
  kind: string;
  undo: string;
  effect: string;
  at: string;
  key?: string;
  tries?: number;
  round?: number;
  error?: TaskError;
}
