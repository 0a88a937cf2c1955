// Connects a page to a program of Weaver that runs in a tab of this browser or on a server. Without dependencies; weaver.d.ts has the types.

/** @typedef {import("./weaver").State} State */

const known = new Map(); // connections of this page, by URL

/**
 * Connects to the program whose files lie beside this module, or below `base`; or to a copy of it that shows the
 * capsule that openCapsule returned.
 */
export function connect(options = {}) {
  const base = new URL(options.base ?? ".", options.base ? location.href : import.meta.url).href;
  const key = base + " " + (options.capsule ?? "");
  let w = known.get(key);
  if (!w) known.set(key, (w = new Weaver(base, options.capsule)));
  return w;
}

const folder = "capsules"; // of the private files

/** Stores a capsule (`weaver export`) in the private files, and returns its name for connect. Nothing runs in it. */
export async function openCapsule(file) {
  const head = new TextDecoder().decode(await file.slice(0, 15).arrayBuffer());
  if (head !== "SQLite format 3") throw new TypeError(`${file.name} is no capsule: make one with \`weaver export ID --to FILE\``);
  for (const [ok, text] of unsupported) {
    if (!ok()) throw new TypeError(text);
  }
  const bytes = await file.arrayBuffer();
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const name = [...sum.slice(0, 8)].map((b) => b.toString(16).padStart(2, "0")).join("");
  const dir = await (await navigator.storage.getDirectory()).getDirectoryHandle(folder, { create: true });
  const there = await dir.getFileHandle(name).catch(() => null);
  if (there && (await there.getFile()).size > 0) return name;
  const out = await (await dir.getFileHandle(name, { create: true })).createWritable();
  await out.write(bytes);
  await out.close();
  return name;
}

/** Deletes a capsule that no tab shows. */
export async function closeCapsule(name) {
  const dir = await (await navigator.storage.getDirectory()).getDirectoryHandle(folder);
  for (const file of [name, name + "-journal"]) await dir.removeEntry(file).catch(() => {});
}

const unsupported = [
  [() => globalThis.isSecureContext, "This page is not in a secure context, where browsers give no files to pages: open it over https, or at localhost."],
  [() => navigator.locks && globalThis.BroadcastChannel && globalThis.Worker, "This browser is too old: it has no Web Locks."],
  [() => navigator.storage?.getDirectory, "This browser has no private file system (OPFS) for pages. A private window may be the reason; else use a newer browser."],
  [() => globalThis.WebAssembly, "WebAssembly is switched off in this browser."],
];

class Weaver extends EventTarget {
  #base;
  #config; // promise of weaver.json
  #client = random();
  #calls = new Map(); // by id
  #next = 1;
  #all = null; // the channel of all pages
  #session = ""; // of the worker that answers
  #worker = null;
  #stop = null; // ends the worker and releases the lock
  #asleep = false;
  #state = { kind: "starting", here: false, text: "" };
  #output = [];

  constructor(base, capsule) {
    super();
    this.#base = base;
    const at = new URL("weaver.json", base);
    this.#config = fetch(at, { cache: "no-cache" }).then(
      async (res) => {
        if (!res.ok) throw new Error(`${res.url}: the server answered ${res.status}; \`weaver browser build\` writes this file`);
        const config = await res.json();
        if (!config.server && at.origin !== location.origin) {
          throw new Error(`${at.origin} is another origin than this page's (${location.origin}), and a browser keeps the files of each to itself: put the program's files beside the page`);
        }
        if (!capsule) return config;
        if (config.server) throw new Error("The program runs on a server: a capsule is shown there by `weaver serve --store sqlite:FILE`.");
        return { ...config, name: `${config.name}:${capsule}`, env: { ...config.env, WEAVER_CAPSULE: `${folder}/${capsule}` } };
      },
      (err) => {
        throw new Error(`${at} cannot be loaded (${err.message}): ${at.origin === location.origin ? "the server does not answer" : "it is another origin, whose files a page cannot use; put them beside the page"}`);
      },
    );
    this.#config.then(
      (c) => (c.server ? this.#set({ kind: "running", here: false, text: "" }) : this.#begin(c)),
      (err) => this.#set({ kind: "failed", here: false, text: String(err.message ?? err) }),
    );
  }

  /** @returns {State} */
  get state() {
    return this.#state;
  }

  /** What the program printed, as far as it runs in this tab. */
  get output() {
    return this.#output.join("");
  }

  #set(state) {
    this.#state = state;
    if (state.kind === "failed") {
      for (const [id, call] of this.#calls) {
        this.#calls.delete(id);
        call.fail(new TypeError(state.text));
      }
    }
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  #begin(config) {
    for (const [ok, text] of unsupported) {
      if (!ok()) return this.#set({ kind: "failed", here: false, text });
    }
    const name = "weaver:" + config.name;
    this.#all = new BroadcastChannel(name);
    this.#all.onmessage = (ev) => this.#heard(ev.data);
    const mine = new BroadcastChannel(name + ":" + this.#client);
    mine.onmessage = (ev) => this.#answer(ev.data);
    addEventListener("pagehide", () => {
      this.#all.postMessage({ kind: "bye", client: this.#client });
      this.#sleep();
    });
    addEventListener("pageshow", (ev) => {
      if (ev.persisted) this.#wake(config);
    });
    // The worker of a frozen page ends, as in a crash, so that another tab continues at once.
    document.addEventListener("freeze", () => this.#sleep());
    document.addEventListener("resume", () => this.#wake(config));
    this.#all.postMessage({ kind: "hello" });
    this.#queue(config);
  }

  #sleep() {
    this.#asleep = true;
    this.#stop?.();
  }

  #wake(config) {
    if (!this.#asleep) return;
    this.#asleep = false;
    this.#all.postMessage({ kind: "hello" });
    this.#queue(config);
  }

  /** Waits for the lock of the program, which the page that runs it holds. */
  #queue(config) {
    const abort = new AbortController();
    const stop = () => abort.abort();
    this.#stop = stop;
    navigator.locks
      .request("weaver:" + config.name, { signal: abort.signal }, () => this.#run(config))
      .catch((err) => {
        if (err.name !== "AbortError") this.#set({ kind: "failed", here: false, text: String(err.message ?? err) });
      });
  }

  /** Runs the program in this tab until it fails or the page sleeps. The lock is held. */
  async #run(config) {
    let pause = 500;
    while (!this.#asleep) {
      this.#set({ kind: "starting", here: true, text: "" });
      const began = Date.now();
      const end = await this.#start(config);
      if (this.#asleep) return;
      if (!end.ready || end.gone) {
        this.#all.postMessage({ kind: "failed", text: end.text, gone: end.gone });
        return this.#set({ kind: "failed", here: true, text: end.text });
      }
      // It crashed. Its tasks go on in the next one.
      console.warn(`Weaver's program ended and is started again: ${end.text}`);
      if (Date.now() - began > 60_000) pause = 500;
      this.#set({ kind: "starting", here: true, text: end.text });
      await new Promise((done) => {
        this.#stop = done; // a page that freezes now gives the lock up
        setTimeout(done, pause);
      });
      pause = Math.min(30_000, pause * 2);
    }
  }

  /** Starts the worker. The promise is that of its end. */
  #start(config) {
    return new Promise((resolve) => {
      let ready = false;
      const lines = [];
      const worker = (this.#worker = new Worker(new URL(config.worker ?? "worker.js", this.#base)));
      const end = (text, gone = false) => {
        worker.terminate();
        this.#worker = null;
        resolve({ ready, text, gone });
      };
      this.#stop = () => end("the page sleeps");
      worker.onerror = (ev) => {
        ev.preventDefault();
        end(ev.message || `${new URL(config.worker ?? "worker.js", this.#base)} cannot be loaded`);
      };
      worker.onmessage = (ev) => {
        const m = ev.data;
        if (m.kind === "output") {
          lines.push(...m.text.split("\n").filter((l) => l !== ""));
          lines.splice(0, lines.length - 20);
          this.#output.push(m.text);
          this.#output.splice(0, this.#output.length - 1000);
          this.dispatchEvent(new CustomEvent("output", { detail: m.text }));
        } else if (m.kind === "ready") {
          ready = true;
          this.#set({ kind: "running", here: true, text: "" });
        } else if (m.kind === "failed" || m.kind === "gone") {
          end(m.text, m.kind === "gone");
        } else if (m.kind === "ended") {
          end(lines.findLast((l) => l.startsWith("error: "))?.slice(7) ?? (lines.join("\n") || `the program ended with code ${m.code}`));
        }
      };
      const at = (file) => new URL(file, this.#base).href;
      const env = { ...config.env, WEAVER_TAB: config.name, WEAVER_SESSION: random() };
      worker.postMessage({ kind: "start", exec: at(config.exec), wasm: at(config.wasm), args: [config.name], env });
    });
  }

  /** A message to all pages. */
  #heard(m) {
    if (m.kind === "failed" && m.gone) this.#stop?.(); // no other tab starts an empty program before its user has read the reason
    if (m.kind === "failed" && !this.#state.here) this.#set({ kind: "failed", here: false, text: m.text });
    if (m.kind !== "ready") return;
    if (m.session !== this.#session) {
      this.#session = m.session;
      for (const [id, call] of this.#calls) {
        if (call.sent && (call.body || !call.again)) {
          this.#calls.delete(id);
          call.fail(new TypeError("The tab that ran the program has gone, and the answer with it."));
        } else {
          this.#send(call);
        }
      }
    }
    if (!this.#state.here) this.#set({ kind: "running", here: false, text: "" });
    else if (this.#state.kind !== "running") this.#set({ kind: "running", here: true, text: "" });
  }

  #send(call) {
    call.sent = true;
    this.#all.postMessage(call.message);
  }

  /** A message to this page. */
  #answer(m) {
    const call = this.#calls.get(m.id);
    if (!call) return;
    if (m.kind === "head") {
      call.head(m);
    } else if (m.kind === "part") {
      call.body?.enqueue(m.bytes);
    } else if (m.kind === "end") {
      this.#calls.delete(m.id);
      if (m.broken || !call.body) call.fail(new TypeError("The program failed in the middle of the answer."));
      else call.body.close();
    }
  }

  /**
   * Sends a request to the program, as the browser's fetch. `path` is relative, such as "v1/tasks".
   * It waits until the program runs, and fails with a TypeError if it cannot.
   */
  async fetch(path, init = {}) {
    const config = await this.#config.catch((err) => {
      throw new TypeError(String(err.message ?? err));
    });
    const url = new URL(path, this.#base);
    if (config.server) return fetch(url, init);
    if (this.#state.kind === "failed") throw new TypeError(this.#state.text);
    const req = new Request(url, { ...init, signal: undefined });
    const body = init.body === undefined || init.body === null ? null : new Uint8Array(await req.arrayBuffer());
    const root = new URL(this.#base).pathname;
    const signal = init.signal;
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const id = String(this.#next++);
      const cancel = () => {
        this.#calls.delete(id);
        this.#all.postMessage({ kind: "cancel", client: this.#client, id });
      };
      const call = {
        sent: false,
        again: req.method === "GET" || req.method === "HEAD" || req.headers.has("Idempotency-Key"),
        body: null,
        message: {
          kind: "request", client: this.#client, id, method: req.method, path: "/" + url.pathname.slice(root.length) + url.search, headers: [...req.headers], body,
        },
        fail: (err) => {
          reject(err);
          call.body?.error(err);
        },
        head: (m) => {
          const stream = new ReadableStream(
            {
              start: (controller) => {
                call.body = controller;
              },
              pull: () => undefined,
              cancel,
            },
            { highWaterMark: 0 },
          ).pipeThrough(
            new TransformStream({
              transform: (bytes, to) => {
                this.#all.postMessage({ kind: "read", client: this.#client, id, bytes: bytes.length });
                to.enqueue(bytes);
              },
            }),
          );
          const empty = m.status === 204 || m.status === 205 || m.status === 304;
          resolve(new Response(empty ? null : stream, { status: m.status, headers: m.headers }));
        },
      };
      signal?.addEventListener("abort", () => {
        if (!this.#calls.has(id)) return;
        cancel();
        call.fail(signal.reason);
      });
      this.#calls.set(id, call);
      if (this.#session !== "") this.#send(call);
      else this.#all?.postMessage({ kind: "hello" });
    });
  }

  async #json(method, path, body, headers = {}) {
    const init = { method, headers: { ...headers } };
    if (body !== undefined) {
      init.headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    const text = await (await this.#ok(await this.fetch(path, init))).text();
    return text === "" ? undefined : JSON.parse(text);
  }

  /** Enqueues a task. Options are further fields of POST /v1/tasks. The task is stored when the promise resolves. */
  enqueue(type, input, options = {}) {
    return this.#json("POST", "v1/tasks", { task_type: type, input, ...options }, { "Idempotency-Key": random() });
  }

  /** Reads a task. */
  task(id) {
    return this.#json("GET", `v1/tasks/${encodeURIComponent(id)}`);
  }

  /** Sends a signal to a task. It arrives once, also if the answer is lost and the call repeated with the same key. */
  signal(id, name, payload = null, key = random()) {
    return this.#json("POST", `v1/tasks/${encodeURIComponent(id)}/signal`, { name, key, payload });
  }

  /** Sends any other request with JSON. An answer without success is an Error with status and problem. */
  json(method, path, body) {
    return this.#json(method, path, body);
  }

  /**
   * Follows topics of /v1/watch, such as "task:ID" or "tasks:state:failed", and calls `each` with the rows of a topic
   * after every change. It goes on after interruptions. The result stops it.
   */
  watch(topics, each) {
    const stop = new AbortController();
    const rows = new Map(topics.map((t) => [t, new Map()]));
    const follow = async () => {
      const query = topics.map((t) => "topic=" + encodeURIComponent(t)).join("&");
      const res = await this.fetch("v1/watch?" + query, { signal: stop.signal, headers: { Accept: "text/event-stream" } });
      if (!res.ok) throw Object.assign(new Error(`the answer was ${res.status}: ${await res.text()}`), { refused: res.status < 500 });
      const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const data = text.slice(0, end).split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("");
          text = text.slice(end + 2);
          for (const u of (data && JSON.parse(data).topics) || []) {
            const of = rows.get(u.topic);
            if (!of) continue;
            if (u.snapshot) of.clear();
            for (const id of u.removed ?? []) of.delete(id);
            for (const row of u.rows ?? []) of.set(row.id, row.row ?? row);
            if (!u.more) each([...of.values()], u.topic);
          }
        }
      }
    };
    (async () => {
      while (!stop.signal.aborted) {
        try {
          await follow();
        } catch (err) {
          if (stop.signal.aborted) return;
          if (err.refused) {
            this.dispatchEvent(new CustomEvent("refused", { detail: err.message }));
            return;
          }
          await new Promise((done) => setTimeout(done, 500));
        }
      }
    })();
    return () => stop.abort();
  }

  /**
   * Returns a ZIP file with a copy of the database at one instant and its artifacts. It can be restored here, or be
   * unpacked beside a program on a machine.
   */
  async backup() {
    const res = await this.#ok(await this.fetch("browser/backup"));
    const name = /filename="([^"]+)"/.exec(res.headers.get("Content-Disposition"))?.[1] ?? "weaver.zip";
    return new File([await res.blob()], name, { type: "application/zip" });
  }

  /**
   * Replaces the program's files by those of a backup, or by a database. Without `replace`, a program with tasks
   * refuses it. All tabs go on with the new files.
   */
  async restore(file, { replace = false } = {}) {
    await this.#ok(await this.fetch(`browser/restore?replace=${replace}`, { method: "POST", body: file }));
  }

  /** Checks the invariants of the store, as `weaver doctor` does. */
  async check() {
    return (await this.#ok(await this.fetch("browser/check"))).json();
  }

  async #ok(res) {
    if (res.ok) return res;
    const text = await res.text();
    const problem = res.headers.get("Content-Type")?.includes("json") ? JSON.parse(text) : { detail: text };
    throw Object.assign(new Error(problem.detail ?? problem.title ?? `the answer was ${res.status}`), { status: res.status, problem });
  }

  /**
   * Asks the browser to keep the files when space gets short. Some browsers ask the user, so call it when the user has
   * begun something. The result is the browser's answer.
   */
  async persist() {
    if ((await this.#config).server) return true;
    return (await navigator.storage.persisted()) || navigator.storage.persist();
  }
}

function random() {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
}
