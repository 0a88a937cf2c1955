// Values of tasks: as a tree and as text, never as HTML. Numbers keep their own text.
import { useMemo, useState } from "preact/hooks";
import { Problem, send } from "../lib/api";
import { bytes, number, plural, visible } from "../lib/format";
import { field, parse, pointerPart, write, type Json } from "../lib/json";
import { useLoad, useReload } from "../lib/load";
import { Button, Copy, Empty, Loading, ProblemBox } from "./basic";

const previewSize = 64 * 1024;
const childrenShown = 100;
const matchesShown = 200;

export interface Payload {
  json: Json | undefined; // undefined: no value
  text: string; // with an indentation
  size: number; // of the value without white space, in bytes
}

export function payloadOf(v: Json | undefined): Payload {
  const text = v ? write(v) : "";
  return { json: v, text, size: v ? new TextEncoder().encode(write(v, 0)).length : 0 };
}

async function load(path: string, signal: AbortSignal): Promise<Payload> {
  try {
    return payloadOf(field(parse(await (await send("GET", path, { signal })).text()), "value"));
  } catch (err) {
    if (err instanceof Problem && err.status === 404) return payloadOf(undefined);
    throw err;
  }
}

/** A value that a request returns. */
export function PayloadOf({ path, name, version = "", empty }: { path: string; name: string; version?: string; empty: string }) {
  const v = useLoad(path, (s) => load(path, s));
  useReload(v.reload, version);
  if (v.problem) return <ProblemBox problem={v.problem} retry={v.reload} />;
  if (!v.data) return <Loading rows={2} />;
  if (!v.data.json) return <Empty title={empty} />;
  return <Viewer of={v.data} name={name} />;
}

/** A value that is loaded when the user opens it. */
export function PayloadOnDemand({ path, name, title }: { path: string; name: string; title: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="on-demand" onToggle={(ev) => setOpen(ev.currentTarget.open)}>
      <summary>{title}</summary>
      {open && <PayloadOf path={path} name={name} empty="It has no value." />}
    </details>
  );
}

/** Saves bytes as a file, which no browser shows as a page. */
function save(content: BlobPart, name: string): void {
  const a = document.createElement("a");
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  a.href = url;
  a.download = name.replace(/[^\w.-]+/g, "_");
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function Viewer({ of, name }: { of: Payload; name: string }) {
  const [form, setForm] = useState<"tree" | "text">("tree");
  const [all, setAll] = useState(false);
  const [search, setSearch] = useState("");
  const large = of.text.length > previewSize;
  const parts = of.json?.kind === "object" || of.json?.kind === "array";
  const tree = form === "tree" && parts;
  return (
    <div class="payload">
      <div class="payload-head">
        <span class="muted">{bytes(of.size)}</span>
        {parts && (
          <div class="segmented" role="group" aria-label="Form">
            <button type="button" aria-pressed={form === "tree"} onClick={() => setForm("tree")}>
              Tree
            </button>
            <button type="button" aria-pressed={form === "text"} onClick={() => setForm("text")}>
              Text
            </button>
          </div>
        )}
        <input type="search" aria-label={`Search in ${name}`} placeholder="Search" value={search} onInput={(ev) => setSearch(ev.currentTarget.value)} />
        <Copy text={of.text} label={`Copy ${name}`} small={false} />
        <Button kind="plain" icon="download" label={`Download ${name}`} onClick={() => save(of.text, name + ".json")} />
      </div>
      {search.trim() && of.json ? (
        <Matches json={of.json} want={search.trim().toLowerCase()} />
      ) : tree && of.json ? (
        <div class="tree" role="group" aria-label={name}>
          <Node v={of.json} name="" depth={0} open={2} />
        </div>
      ) : (
        <pre class="raw" tabIndex={0} aria-label={name}>
          {visible(large && !all ? of.text.slice(0, previewSize) : of.text)}
        </pre>
      )}
      {large && !all && !tree && !search.trim() && (
        <p class="note">
          The first 64 KiB of {bytes(of.text.length)} are shown. <Button small onClick={() => setAll(true)}>Show everything</Button>
        </p>
      )}
    </div>
  );
}

/** A value without parts: its own text. Long strings are cut until they are opened. */
function Scalar({ v }: { v: Json }) {
  const [all, setAll] = useState(false);
  const text = v.kind === "string" ? JSON.stringify(v.value) : v.kind === "object" || v.kind === "array" ? "" : v.text;
  const cut = text.length > 1000 && !all;
  return (
    <>
      <bdi class={"json-" + v.kind}>{visible(cut ? text.slice(0, 1000) : text.slice(0, 1_000_000))}</bdi>
      {cut && (
        <>
          …{" "}
          <button type="button" class="link" onClick={() => setAll(true)}>
            all {number(text.length)} characters
          </button>
        </>
      )}
    </>
  );
}

function Node({ v, name, depth, open }: { v: Json; name: string; depth: number; open: number }) {
  const parts: [string, Json][] = v.kind === "object" ? v.entries : v.kind === "array" ? v.items.map((e, i) => [String(i), e]) : [];
  const [shown, setShown] = useState(depth < open && (depth === 0 || parts.length <= 30));
  const [most, setMost] = useState(childrenShown);
  const label = depth > 0 && <span class="json-name">{visible(name)}: </span>;
  if (v.kind !== "object" && v.kind !== "array")
    return (
      <div class="json-line">
        {label}
        <Scalar v={v} />
      </div>
    );
  const what = v.kind === "object" ? `{} ${plural(parts.length, "field")}` : `[] ${plural(parts.length, "entry", "entries")}`;
  if (parts.length === 0)
    return (
      <div class="json-line">
        {label}
        <span class="muted">{what}</span>
      </div>
    );
  return (
    <details class="json-node" open={shown} onToggle={(ev) => ev.target === ev.currentTarget && setShown(ev.currentTarget.open)}>
      <summary>
        {label}
        <span class="muted">{what}</span>
      </summary>
      {shown && (
        <div class="json-parts">
          {parts.slice(0, most).map(([k, e], i) => (
            <Node key={k + " " + i} v={e} name={k} depth={depth + 1} open={open} />
          ))}
          {parts.length > most && (
            <button type="button" class="link" onClick={() => setMost(most * 10)}>
              {number(parts.length - most)} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

/** The names and values with a text, each with its JSON pointer. */
function Matches({ json, want }: { json: Json; want: string }) {
  const found = useMemo(() => {
    const out: { at: string; v: Json }[] = [];
    let total = 0;
    const walk = (v: Json, at: string, name: string) => {
      const own = v.kind === "string" ? v.value : v.kind === "object" || v.kind === "array" ? "" : v.text;
      if (name.toLowerCase().includes(want) || own.toLowerCase().includes(want)) {
        total++;
        if (out.length < matchesShown) out.push({ at: at || "/", v });
      }
      if (v.kind === "object") for (const [k, e] of v.entries) walk(e, at + pointerPart(k), k);
      if (v.kind === "array") v.items.forEach((e, i) => walk(e, at + pointerPart(i), ""));
    };
    walk(json, "", "");
    return { out, total };
  }, [json, want]);
  return (
    <div class="matches">
      <p role="status" class="muted">
        {plural(found.total, "match", "matches")}
        {found.total > matchesShown && `, the first ${matchesShown} are shown`}
      </p>
      {found.out.map((m) => (
        <div class="match" key={m.at}>
          <code>{visible(m.at)}</code>
          {m.v.kind === "object" || m.v.kind === "array" ? <Node v={m.v} name="" depth={0} open={0} /> : <Scalar v={m.v} />}
        </div>
      ))}
    </div>
  );
}

const logTail = 64 * 1024;

/** The output of an attempt, its end first: older text on demand. */
export function Logs({ path, attempts, attempt, choose, running }: { path: string; attempts: number[]; attempt: string; choose: (a: string) => void; running: boolean }) {
  const [tail, setTail] = useState(logTail);
  const [search, setSearch] = useState("");
  const [wrap, setWrap] = useState(true);
  const logs = useLoad(
    `${path} ${attempt} ${tail}`,
    async (s) => {
      try {
        return await (await send("GET", path, { params: { attempt, tail: tail || undefined }, signal: s })).text();
      } catch (err) {
        if (err instanceof Problem && err.status === 404) return "";
        throw err;
      }
    },
    running ? 3000 : 0,
  );
  const text = useMemo(() => {
    // Colours of terminals are left out.
    const plain = (logs.data ?? "").replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
    const want = search.trim().toLowerCase();
    return want ? plain.split("\n").filter((l) => l.toLowerCase().includes(want)).join("\n") : plain;
  }, [logs.data, search]);
  const cut = !!tail && new TextEncoder().encode(logs.data ?? "").length > tail - 4096 && (logs.data?.length ?? 0) > 0;
  return (
    <div>
      <div class="payload-head">
        <label class="rows">
          Attempt{" "}
          <select value={attempt} onChange={(ev) => choose(ev.currentTarget.value)}>
            <option value="">last</option>
            {[...attempts].reverse().slice(0, 200).map((n) => (
              <option key={n} value={n}>
                {n}
              </option>
            ))}
          </select>
        </label>
        <input type="search" aria-label="Lines with" placeholder="Lines with…" value={search} onInput={(ev) => setSearch(ev.currentTarget.value)} />
        <label class="rows">
          <input type="checkbox" checked={wrap} onChange={(ev) => setWrap(ev.currentTarget.checked)} /> Wrap
        </label>
        {logs.data && <Copy text={() => text} label="Copy the output" small={false} />}
        {logs.data && <Button kind="plain" icon="download" label="Download the output" onClick={() => void saveLog(path, attempt)} />}
      </div>
      {logs.problem ? (
        <ProblemBox problem={logs.problem} retry={logs.reload} />
      ) : logs.data === undefined ? (
        <Loading rows={5} />
      ) : logs.data === "" ? (
        <Empty title="There is no output here.">It wrote nothing, its engine does not store lines (weaver.PersistLogs), or its command ran where another folder keeps them.</Empty>
      ) : (
        <>
          {cut && (
            <p class="note">
              The last {bytes(tail)} are shown. <Button small onClick={() => setTail(tail < 1024 * 1024 ? 1024 * 1024 : 0)}>Show more</Button>
            </p>
          )}
          <pre class={"raw log" + (wrap ? "" : " nowrap")} tabIndex={0} aria-label="Output">
            {visible(text) || "No line has this text."}
          </pre>
        </>
      )}
    </div>
  );
}

async function saveLog(path: string, attempt: string): Promise<void> {
  save(await (await send("GET", path, { params: { attempt } })).blob(), `output-${attempt || "last"}.txt`);
}
