// Follows topics of GET /v1/watch over one stream, with polling where streams do not pass. It runs in the
// shared worker for all tabs, or in the page where shared workers are missing.

export interface Row {
  id: string;
  row?: unknown;
  cut?: boolean;
}

export interface TopicState {
  rows: Map<string, Row>;
  next?: string | undefined;
  leftOut: number;
  loaded: boolean;
  problem?: WireProblem | undefined;
}

/** A problem as the API writes it. */
export interface WireProblem {
  status: number;
  title: string;
  detail?: string;
  type?: string;
  errors?: { parameter?: string; pointer?: string; column?: number; detail: string; meant?: string; words?: string[] }[];
}

/** How the data arrives. `since` is the time of the last change of the mode, by this machine's clock. */
export interface Connection {
  mode: "connecting" | "live" | "polling" | "lost" | "refused";
  status: number; // of the refused answer
  detail: string;
  at: number; // when the last data or heartbeat arrived, by this machine's clock
  offset: number; // milliseconds that the server's clock is ahead
  retryAt: number; // of the next try, while it is lost
  opened: number; // streams and polls so far
}

interface Update {
  topic: string;
  snapshot?: boolean;
  removed?: string[];
  rows?: Row[];
  more?: boolean;
  left_out?: number;
  next?: string;
  problem?: WireProblem;
}

/** A message to a page: changes of topics, or the state of the connection. */
export type Message = { kind: "updates"; updates: Update[] } | { kind: "connection"; connection: Connection };

const silentAfter = 40_000; // the server sends a comment every 15 s
const bufferedAfter = 5_000; // the server sends the first line at once
const pollEvery = 3_000;
const retryStreamAfter = 60_000; // of polling
export const maxTopics = 20; // of a stream

export class Streamer {
  private topics: string[] = [];
  private bad = new Set<string>(); // topics that the API refuses, as a query with a mistake
  private state = new Map<string, TopicState>();
  private run = 0; // changes with each connection; older ones end
  private abort = new AbortController();
  private failures = 0;
  private pollUntil = 0;
  private wake: (() => void) | null = null;
  private starting: ReturnType<typeof setTimeout> | undefined;
  connection: Connection = { mode: "connecting", status: 0, detail: "", at: 0, offset: 0, retryAt: 0, opened: 0 };

  constructor(
    private readonly api: string, // the URL of the dashboard
    private readonly tell: (m: Message) => void,
  ) {}

  /** Changes the followed topics. Several changes in a moment make one new stream. */
  follow(topics: string[]): void {
    const next = [...new Set(topics)].sort();
    if (next.length === this.topics.length && next.every((t, i) => t === this.topics[i])) return;
    this.topics = next;
    for (const t of this.state.keys()) if (!next.includes(t)) this.state.delete(t);
    for (const t of this.bad) if (!next.includes(t)) this.bad.delete(t);
    clearTimeout(this.starting);
    this.starting = setTimeout(() => this.restart(), 20);
  }

  /** Tries again at once, as after a login or when the machine is online again. */
  retry(): void {
    this.failures = 0;
    if (this.connection.mode === "live") return;
    this.pollUntil = 0;
    this.restart();
  }

  /** Connects anew, as after a login or logout. */
  reconnect(): void {
    this.failures = this.pollUntil = 0;
    this.bad.clear();
    this.restart();
  }

  /** The present content of a topic as an update, for a page that begins to follow it. */
  snapshot(topic: string): Update | null {
    const st = this.state.get(topic);
    if (!st || (!st.loaded && !st.problem)) return null;
    const u: Update = { topic, snapshot: true, rows: [...st.rows.values()], left_out: st.leftOut };
    if (st.next) u.next = st.next;
    if (st.problem) return { topic, problem: st.problem };
    return u;
  }

  private restart(): void {
    this.run++;
    this.abort.abort();
    this.wake?.();
    if (this.good().length > 0) void this.loop(this.run);
  }

  private good(): string[] {
    return this.topics.filter((t) => !this.bad.has(t)).slice(0, maxTopics);
  }

  private url(topics: string[], once: boolean): URL {
    const url = new URL("v1/watch", this.api);
    for (const t of topics) url.searchParams.append("topic", t);
    if (once) url.searchParams.set("once", "true");
    return url;
  }

  /** Finds the topics for which the API refuses the whole request. It reports whether there are any. */
  private async findBad(abort: AbortSignal): Promise<boolean> {
    let found = false;
    for (const topic of this.good()) {
      const res = await fetch(this.url([topic], true), { signal: abort, credentials: "same-origin", cache: "no-store" });
      if (res.status === 400 || res.status === 404) {
        found = true;
        this.bad.add(topic);
        this.apply([{ topic, problem: (await res.json().catch(() => ({ status: res.status, title: "The server refuses this." }))) as WireProblem }]);
      } else {
        await res.body?.cancel();
      }
    }
    return found;
  }

  private set(change: Partial<Connection>): void {
    this.connection = { ...this.connection, ...change };
    this.tell({ kind: "connection", connection: this.connection });
  }

  private async loop(run: number): Promise<void> {
    while (run === this.run && this.good().length > 0) {
      const polling = Date.now() < this.pollUntil;
      const end = await this.connect(polling, run);
      if (run !== this.run) return;
      let pause = 0;
      switch (end.kind) {
        case "ended": // by the server, as at the stream's maximum age; or a poll
          this.failures = 0;
          pause = polling ? pollEvery : 200;
          break;
        case "buffered":
          this.pollUntil = Date.now() + retryStreamAfter;
          continue;
        case "refused":
          this.failures++;
          // A server that is away answers no poll either; a proxy may refuse streams alone.
          if (end.status === 429 || (end.status >= 500 && this.failures >= 4)) this.pollUntil = Date.now() + retryStreamAfter;
          this.set({ mode: end.status >= 500 || end.status === 429 ? "lost" : "refused", status: end.status, detail: end.detail });
          pause = this.backoff();
          break;
        case "lost":
          this.failures++;
          this.set({ mode: "lost", status: 0, detail: "" });
          pause = this.backoff();
          break;
      }
      if (pause > 200) this.set({ retryAt: Date.now() + pause });
      await this.sleep(pause);
    }
  }

  private backoff(): number {
    const most = Math.min(15_000, 500 * 2 ** Math.min(this.failures, 5));
    return most / 2 + Math.random() * (most / 2);
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      const self = this;
      function done() {
        clearTimeout(timer);
        self.wake = null;
        resolve();
      }
      this.wake = done;
    });
  }

  private async connect(polling: boolean, run: number): Promise<{ kind: "ended" | "lost" | "buffered" } | { kind: "refused"; status: number; detail: string }> {
    const abort = (this.abort = new AbortController());
    let buffered = false;
    let watchdog = setTimeout(() => {
      buffered = true;
      abort.abort();
    }, polling ? silentAfter : bufferedAfter);
    const alive = (ms: number) => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), ms);
    };
    try {
      const res = await fetch(this.url(this.good(), polling), { signal: abort.signal, credentials: "same-origin", cache: "no-store", headers: { Accept: "text/event-stream" } });
      if (!res.ok || !res.body || !(res.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
        const p = (await res.json().catch(() => ({}))) as { detail?: string };
        if (res.status === 400) {
          alive(silentAfter);
          if (await this.findBad(abort.signal)) {
            if (run === this.run && this.good().length === 0) this.set({ mode: "live", at: Date.now(), status: 0, detail: "" });
            return { kind: "ended" };
          }
        }
        return { kind: "refused", status: res.ok ? 502 : res.status, detail: p.detail ?? "" };
      }
      const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      let first = true;
      for (;;) {
        const { value, done } = await reader.read();
        if (run !== this.run) return { kind: "ended" };
        if (done) return { kind: "ended" };
        alive(silentAfter);
        if (first || this.connection.mode !== (polling ? "polling" : "live")) {
          first = false;
          this.failures = 0;
          this.set({ mode: polling ? "polling" : "live", at: Date.now(), status: 0, detail: "", retryAt: 0, opened: this.connection.opened + 1 });
        }
        this.connection.at = Date.now();
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          this.event(text.slice(0, end));
          text = text.slice(end + 2);
        }
        if (text === "") this.set({ at: this.connection.at });
      }
    } catch {
      return { kind: buffered && !polling ? "buffered" : "lost" };
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
  }

  private event(text: string): void {
    let name = "message";
    let data = "";
    for (const line of text.split("\n")) {
      if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (data === "" || (name !== "update" && name !== "error")) return;
    const frame = JSON.parse(data) as { at?: number; topics?: Update[]; status?: number; detail?: string };
    if (frame.at) this.connection.offset = frame.at - Date.now();
    this.apply((frame.topics ?? []).filter((u) => this.topics.includes(u.topic)));
  }

  private apply(updates: Update[]): void {
    for (const u of updates) {
      let st = this.state.get(u.topic);
      if (!st) this.state.set(u.topic, (st = { rows: new Map(), leftOut: 0, loaded: false }));
      applyUpdate(st, u);
    }
    if (updates.length > 0) this.tell({ kind: "updates", updates });
  }
}

/** Applies an update of a topic to its state. */
export function applyUpdate(st: TopicState, u: Update): void {
  if (u.problem) {
    st.problem = u.problem;
    return;
  }
  st.problem = undefined;
  if (u.snapshot) st.rows.clear();
  for (const id of u.removed ?? []) st.rows.delete(id);
  for (const row of u.rows ?? []) st.rows.set(row.id, row);
  st.next = u.next;
  st.leftOut = u.left_out ?? 0;
  if (!u.more) st.loaded = true;
}
