// Orders: requests that are sent to a partner at least once and settled once.
import { useState } from "preact/hooks";
import { get, post, Problem, segment, send } from "../lib/api";
import { number, plural } from "../lib/format";
import { field, parse, write, type Json } from "../lib/json";
import { useLoad } from "../lib/load";
import { go, href, params, taskHref } from "../lib/router";
import { mayOperate, mayReadValues } from "../lib/session";
import { nanos } from "../lib/time";
import type { Page } from "../lib/types";
import { Button, Copy, Empty, Facts, ID, Loading, PageHead, ProblemBox, Section, Text, Time } from "../parts/basic";
import { because, Filters, Name, openVerb, Pager, Table, TextField } from "../parts/data";
import { closeOpened, Field, FormDialog, open, ReasonField, toast } from "../parts/dialog";
import { Icon, type IconName } from "../parts/icons";
import { payloadOf, Viewer } from "../parts/payload";
import { read } from "../parts/schemaform";

interface Order {
  ledger: { idempotency_key: string; status: string; http_status?: number; outcome_unknown?: boolean; order_id?: string; trace_id?: string; first_seen_at: string; last_seen_at: string; expires_at?: string };
  outbox: {
    idempotency_key: string;
    profile: string;
    order_id?: string;
    status: string;
    attempts: number;
    last_error_code?: string;
    last_error_msg?: string;
    locked_by?: string;
    lease_until?: string;
    send_no: number;
    send_open?: boolean;
    unknown?: boolean;
    held?: boolean;
    timeout_ns: number;
    max_age_ns: number;
    stale_at?: string;
    next_run_at?: string;
    created_at: string;
    updated_at: string;
    task_id?: string;
    step?: string;
  };
}

interface OrderStats {
  counts: Record<string, number>;
  more?: boolean;
  held: number;
  unknown: number;
  oldest_unsettled?: string;
  senders?: { worker_id: string; name: string; adapter?: string; last_seen: string; failed?: number; paused_until?: string; reason?: string }[];
}

const orderHref = (key: string): string => href("orders/" + encodeURIComponent(key));
const path = (key: string, verb = ""): string => `v1/orders/${segment(key)}${verb}`;

const states: Record<string, [string, IconName, string]> = {
  pending: ["pending", "hourglass", "ready"],
  sending: ["sending", "play", "running"],
  failed: ["retrying", "retry", "blocked"],
  succeeded: ["succeeded", "check", "succeeded"],
  aborted: ["given up", "cross", "failed"],
};

function OrderState({ o }: { o: Order }) {
  const [word, icon, cls] = states[o.outbox.status] ?? [o.outbox.status, "dot", ""];
  return (
    <>
      <span class={"state " + cls}>
        <Icon name={icon} /> <span>{word}</span>
      </span>
      {o.outbox.held && <span class="tag wait">held</span>}
      {(o.ledger.outcome_unknown || o.outbox.unknown) && <span class="tag bad">outcome unknown</span>}
    </>
  );
}

/** A verb for all orders, in parts until there are no more. */
function all(verb: string, title: string, keeps: string, after: () => void): void {
  openVerb({
    title,
    verb: title,
    keeps,
    run: async (r) => {
      for (let n = 0; ; ) {
        const ack = await post<{ changed?: number; more?: boolean }>(`v1/bulk/orders/${verb}`, because(r));
        n += ack.changed ?? 0;
        if (!ack.more) return n;
      }
    },
    done: (n) => `${plural(n as number, "order")} changed.`,
    after,
  });
}

export function Orders() {
  const p = params.value;
  const [status, held, task, after] = ["status", "held", "task", "after"].map((k) => p.get(k) ?? "");
  const any = status || held || task;
  const list = useLoad(`orders ${status} ${held} ${task} ${after}`, (s) => get<Page<Order>>("v1/orders", { status, held, task, after, limit: 50 }, s), after ? 0 : 3_000);
  const stats = useLoad("order stats", (s) => get<OrderStats>("v1/stats/orders", {}, s), 5_000);
  const reload = () => (list.reload(), stats.reload());
  const st = stats.data;
  return (
    <>
      <PageHead title="Orders" sub="Sent to a partner at least once with their key, settled once.">
        {mayOperate.value && (
          <>
            <Button icon="pause" onClick={() => all("hold", "Hold all", "No unsettled order is sent until it is released. Their leases end.", reload)}>
              Hold all
            </Button>
            {!!st?.held && (
              <Button icon="play" onClick={() => all("release", "Release all", "All held orders are sent. Settle those that the partner has before.", reload)}>
                Release all
              </Button>
            )}
            <Button onClick={() => all("unlock", "Unlock expired", "Orders whose lease has expired are due again for other workers.", reload)}>Unlock expired</Button>
          </>
        )}
      </PageHead>
      {!st && !stats.problem && <Loading rows={2} />}
      {st && (
        <ul class="counts" aria-label="Orders by state">
          {Object.entries(states).map(([s, [word, icon, cls]]) => (
            <li key={s}>
              <a class={"count " + cls} href={href("orders", { status: s })}>
                <span class="count-n">
                  {number(st.counts[s] ?? 0)}
                  {st.more && (st.counts[s] ?? 0) >= 10_000 ? "+" : ""}
                </span>
                <span class={"state " + cls}>
                  <Icon name={icon} /> <span>{word}</span>
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
      {st && (st.held > 0 || st.unknown > 0) && (
        <p class="order-notes">
          {st.held > 0 && <a class="tag wait" href={href("orders", { held: "true" })}>{plural(st.held, "order")} held</a>}
          {st.unknown > 0 && <a class="tag bad" href={href("orders", { status: "aborted" })}>{plural(st.unknown, "order")} given up with an unknown outcome</a>}
        </p>
      )}
      <Filters filters={[{ name: "status", label: "State", options: Object.entries(states).map(([s, [word]]): [string, string] => [s, word]) }, { name: "held", label: "Held", options: [["true", "only held"]] }, { name: "task", label: "Task", placeholder: "id" }]} />
      {list.problem && <ProblemBox problem={list.problem} retry={list.reload} />}
      <Section title="Orders" aside={st?.oldest_unsettled ? <>the oldest unsettled: <Time at={st.oldest_unsettled} /></> : "newest first"}>
        {!list.data ? (
          !list.problem && <Loading />
        ) : list.data.items.length === 0 ? (
          <Empty title={any ? "No order matches." : "There is no order yet."}>{any ? "Change the filters." : <>Send one: <code>weaver order send FILE</code>, or POST /do/order.</>}</Empty>
        ) : (
          <Table
            label="Orders"
            rows={list.data.items}
            id={(o) => o.outbox.idempotency_key}
            columns={[
              { head: "Key", cell: (o) => <Name to={orderHref(o.outbox.idempotency_key)}>{o.outbox.idempotency_key}</Name> },
              { head: "State", cell: (o) => <><OrderState o={o} />{o.outbox.last_error_code && o.outbox.status !== "succeeded" && <div class="small muted"><Text most={120}>{`${o.outbox.last_error_code}: ${o.outbox.last_error_msg ?? ""}`}</Text></div>}</> },
              { head: "Sends", num: true, cell: (o) => number(o.outbox.send_no) },
              { head: "Next", cell: (o) => <Time at={o.outbox.next_run_at} /> },
              { head: "Accepted", cell: (o) => <Time at={o.outbox.created_at} /> },
              { head: "Task", cell: (o) => (o.outbox.task_id ? <ID id={o.outbox.task_id} to={taskHref(o.outbox.task_id)} /> : "–") },
            ]}
          />
        )}
        <Pager next={list.data?.next} />
      </Section>
      {st && (
        <Section title="Senders" aside={plural(st.senders?.length ?? 0, "worker")}>
          {!st.senders?.length ? (
            <Empty title="No worker sends orders.">
              Start one: <code>weaver worker --roles orders</code>
            </Empty>
          ) : (
            <Table
              label="Senders"
              rows={st.senders}
              id={(w) => w.worker_id}
              columns={[
                { head: "Worker", cell: (w) => <Text>{w.name}</Text> },
                { head: "Adapter", cell: (w) => <Text>{w.adapter ?? "–"}</Text> },
                { head: "Sends", cell: (w) => (w.paused_until ? <span class="paused"><Icon name="pause" /> paused, until <Time at={w.paused_until} />{w.reason && <>: <Text>{w.reason}</Text></>}</span> : "yes") },
                { head: "Failed of the last 20", num: true, cell: (w) => number(w.failed ?? 0) },
                { head: "Last seen", cell: (w) => <Time at={w.last_seen} /> },
              ]}
            />
          )}
        </Section>
      )}
    </>
  );
}

interface Story {
  summary: string;
  past: string[];
  actions?: { command: string; effect: string }[];
}

interface Loaded {
  o: Order;
  request: Json | undefined;
  result: Json | undefined;
}

export function OneOrder({ id }: { id: string }) {
  const one = useLoad(
    "order " + id,
    async (s): Promise<Loaded> => {
      const text = await (await send("GET", path(id), { signal: s })).text();
      const raw = parse(text);
      return { o: JSON.parse(text) as Order, request: field(field(raw, "outbox"), "order_request_json"), result: field(field(raw, "ledger"), "response_payload_json") };
    },
    3_000,
  );
  const why = useLoad("order why " + id, (s) => get<Story>(path(id, "/why"), {}, s), 5_000);
  const { o, request, result } = one.data ?? {};
  const reload = () => (one.reload(), why.reload());
  const verb = (name: string, title: string, keeps: string, more: { check?: string; danger?: boolean } = {}) => (
    <Button onClick={() => openVerb({ title: `${title} ${id}`, verb: title, keeps, ...more, run: (r, checked) => post(path(id, "/" + name), { ...because(r), ...(checked ? { confirmed: true } : {}) }), done: `${title}: done.`, after: reload })}>{title}</Button>
  );
  const r = o?.outbox;
  const open_ = r && r.status !== "succeeded" && r.status !== "aborted";
  const head = (
    <PageHead
      title={<Text>{id}</Text>}
      sub={
        <>
          <a href={href("orders")}>Orders</a> <Copy text={id} label="Copy the key" />
        </>
      }
    >
      {r && mayOperate.value && (
        <>
          {r.status === "aborted" && verb("requeue", "Requeue", "It is sent again with the same key. If its outcome is unknown, the partner is asked first, if the adapter can.", r.unknown || o.ledger.outcome_unknown ? { check: "The partner does not have the order, or may get it again" } : {})}
          {open_ && r.held && verb("release", "Release", "It is sent. Settle it instead if the partner has it.")}
          {r.status === "sending" && verb("unlock", "Unlock", "If its lease has expired, it is due again for another worker.")}
          {open_ && r.send_no === 0 && verb("withdraw", "Withdraw", "It is given up without being sent.", { danger: true })}
          {r.status !== "succeeded" && <Button onClick={() => open(<Settle o={o} request={request} after={reload} />)}>Settle by hand</Button>}
          {r.status === "aborted" && <Button onClick={() => open(<Resubmit id={id} request={request} />)}>Resubmit</Button>}
        </>
      )}
    </PageHead>
  );
  if (!o || !r)
    return (
      <>
        {head}
        {one.problem ? <ProblemBox problem={one.problem} retry={one.reload} /> : <Loading rows={5} />}
      </>
    );
  return (
    <>
      {head}
      {one.problem && <ProblemBox problem={one.problem} retry={one.reload} />}
      <Section title="State" aside={<OrderState o={o} />}>
        {why.data ? (
          <div class="panel-body">
            <p>
              <strong>
                <Text>{why.data.summary}</Text>
              </strong>
            </p>
            <ul class="plain-list">
              {why.data.past.map((p, i) => (
                <li key={i}>
                  <Text>{p}</Text>
                </li>
              ))}
            </ul>
            {why.data.actions?.map((a) => (
              <p key={a.command}>
                <code>{a.command}</code> <Copy text={a.command} label="Copy the command" /> <Text>{a.effect}</Text>
              </p>
            ))}
          </div>
        ) : (
          !why.problem && <Loading />
        )}
        <Facts
          facts={[
            ["Profile", <Text>{r.profile}</Text>],
            ["Order id", r.order_id ? <Text>{r.order_id}</Text> : ""],
            ["Answered with", o.ledger.http_status ? String(o.ledger.http_status) : ""],
            ["Accepted", <Time at={r.created_at} />],
            ["Changed", <Time at={r.updated_at} />],
            ["Next send", r.next_run_at ? <Time at={r.next_run_at} /> : ""],
            ["Not sent after", open_ && r.stale_at ? <Time at={r.stale_at} /> : ""],
            ["Sends", number(r.send_no)],
            ["Time of a send", nanos(r.timeout_ns)],
            ["Held by worker", r.locked_by ? <Text>{r.locked_by}</Text> : ""],
            ["Task", r.task_id ? <><ID id={r.task_id} to={taskHref(r.task_id)} /> {r.step && <Text>{"step " + r.step}</Text>}</> : ""],
            ["Trace", o.ledger.trace_id ? <Text>{o.ledger.trace_id}</Text> : ""],
            ["Removed", o.ledger.expires_at ? <Time at={o.ledger.expires_at} /> : ""],
          ]}
        />
      </Section>
      {mayReadValues.value && (
        <div class="two">
          <Section title="Request">{request ? <div class="panel-body"><Viewer of={payloadOf(request)} name={id + "-request"} /></div> : <Empty title="It is not kept any more." />}</Section>
          <Section title="Result">{result ? <div class="panel-body"><Viewer of={payloadOf(result)} name={id + "-result"} /></div> : <Empty title="There is none yet." />}</Section>
        </div>
      )}
    </>
  );
}

const codes = ["BROKER_REJECTED", "BROKER_TIMEOUT", "BROKER_DOWN", "VALIDATION_ERROR", "INTERNAL_ERROR"];

function useRefusal() {
  const [problem, set] = useState<Problem | null>(null);
  return {
    at: (pointer: string) => problem?.errors.filter((e) => e.pointer?.startsWith("#/" + pointer)).map((e) => e.detail).join(" ") || undefined,
    of: async <T,>(run: () => Promise<T>): Promise<T> => {
      set(null);
      try {
        return await run();
      } catch (err) {
        if (err instanceof Problem) set(err);
        throw err;
      }
    },
  };
}

/** The result that a form begins with: what the request says, and the price of its fill to enter. */
function resultOf(profile: string, request: Json | undefined): string {
  if (profile !== "order" || !request) return JSON.stringify({ status: "ok" });
  const of = (name: string): string => {
    const v = field(request, name);
    return v?.kind === "string" ? v.value : "";
  };
  const [order_id, instrument, side, qty] = ["order_id", "instrument", "side", "qty"].map(of);
  return JSON.stringify({ status: "ok", order_id, instrument, side, executed_qty: qty, fills: [{ px: "", qty }] }, null, 2);
}

function Settle({ o, request, after }: { o: Order; request: Json | undefined; after: () => void }) {
  const id = o.outbox.idempotency_key;
  const [failed, setFailed] = useState("");
  const [message, setMessage] = useState("");
  const [result, setResult] = useState(() => resultOf(o.outbox.profile, request));
  const [reason, setReason] = useState("");
  const refusal = useRefusal();
  const parsed = read(result);
  const submit = async () => {
    const rest = failed ? { failed, ...(message ? { message } : {}) } : {};
    const plain = JSON.stringify({ ...because(reason.trim()), ...rest });
    await refusal.of(() => post(path(id, "/settle"), failed ? plain : (plain === "{}" ? "{" : plain.slice(0, -1) + ",") + `"result":${result}}`));
    toast("The order is settled.");
    after();
  };
  return (
    <FormDialog title={`Settle ${id}`} verb="Settle" close={closeOpened} submit={submit} ready={failed !== "" || parsed.value !== undefined}>
      <p class="dialog-text">Ask the partner first. The ledger gets this result for good: whoever sends the order again is answered with it.</p>
      <Field label="The partner" error={refusal.at("failed")}>
        {(a) => (
          <select {...a} value={failed} onChange={(ev) => setFailed(ev.currentTarget.value)}>
            <option value="">has executed it</option>
            {codes.map((c) => (
              <option value={c} key={c}>
                has not: {c}
              </option>
            ))}
          </select>
        )}
      </Field>
      {failed ? (
        <TextField label="Message" value={message} set={setMessage} help="Empty: the reason." />
      ) : (
        <Field label="Its result" help="JSON, as the partner's answer." error={result ? (parsed.problem ?? refusal.at("result")) : undefined}>
          {(a) => <textarea {...a} rows={8} spellcheck={false} value={result} onInput={(ev) => setResult(ev.currentTarget.value)} />}
        </Field>
      )}
      <ReasonField value={reason} set={setReason} />
    </FormDialog>
  );
}

function Resubmit({ id, request }: { id: string; request: Json | undefined }) {
  const [key, setKey] = useState("");
  const first = request ? write(request) : "";
  const [body, setBody] = useState(first);
  const [reason, setReason] = useState("");
  const refusal = useRefusal();
  const parsed = read(body);
  const submit = async () => {
    const plain = JSON.stringify({ ...because(reason.trim()), new_key: key });
    await refusal.of(() => post(path(id, "/resubmit"), body && body !== first ? `${plain.slice(0, -1)},"body":${body}}` : plain));
    toast("The new order is accepted.");
    go(orderHref(key));
  };
  return (
    <FormDialog title={`Resubmit ${id}`} verb="Resubmit" wide close={closeOpened} submit={submit} ready={key !== "" && !parsed.problem}>
      <p class="dialog-text">It accepts the request, or a corrected one, as a new order. This order stays as it is. It is refused while the outcome is unknown.</p>
      <TextField label="New key" value={key} set={setKey} required error={refusal.at("new_key")} />
      <Field label="Request" help="Unchanged or empty: the stored one." error={parsed.problem ?? refusal.at("body")}>
        {(a) => <textarea {...a} rows={12} spellcheck={false} value={body} onInput={(ev) => setBody(ev.currentTarget.value)} />}
      </Field>
      <ReasonField value={reason} set={setReason} />
    </FormDialog>
  );
}
