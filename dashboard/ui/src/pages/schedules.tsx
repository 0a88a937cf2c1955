// Schedules: next and last times, and what became of them.
import { useState } from "preact/hooks";
import { del, get, post, segment } from "../lib/api";
import { number, plural } from "../lib/format";
import { useLoad } from "../lib/load";
import { timeZone } from "../lib/prefs";
import { quoted } from "../lib/query";
import { go, href, jobHref, params, taskHref } from "../lib/router";
import { may, mayOperate } from "../lib/session";
import { now } from "../lib/time";
import type { Page } from "../lib/types";
import { Button, Empty, Facts, ID, Loading, PageHead, ProblemBox, Section, State, Text, Time } from "../parts/basic";
import { because, Name, openVerb, Pager, Strip, Table, tasksHref, TextField } from "../parts/data";
import { closeOpened, FormDialog, open, ReasonField, toast } from "../parts/dialog";
import { Icon } from "../parts/icons";
import { Paused, queueHref } from "./queues";
import { NewSchedule } from "./scheduleform";
import { typeHref } from "./types";

interface Run {
  at: string;
  task_id?: string;
  job_id?: string;
  state?: string;
}

interface Schedule {
  name: string;
  version: number;
  when: string;
  next?: string;
  fires_at?: string;
  cron?: string;
  every?: string;
  timezone?: string;
  jitter?: string;
  overlap: string;
  catch_up: string;
  not_before?: string;
  not_after?: string;
  task_type?: string;
  queue?: string;
  job_name?: string;
  tasks: number;
  program?: string;
  code_version?: number;
  last?: Run;
  queued?: string[];
  paused?: { at: string; by?: string; reason?: string };
  created_at: string;
  updated_at: string;
  upcoming?: string[];
  fires?: Fire[];
}

interface Fire extends Run {
  until?: string;
  count: number;
  kind: string;
  reason?: string;
  by?: string;
  recorded_at: string;
}

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const named: Record<string, string> = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *" };

/** Simple cron expressions in words; others as they are. */
function words(s: Schedule): string {
  if (!s.cron) return s.when;
  const [min = "", hour = "", dom = "", month = "", dow = ""] = (named[s.cron] ?? s.cron).split(/\s+/);
  const zone = ` (${s.timezone || "UTC"})`;
  const step = /^\*\/(\d+)$/.exec(min);
  if (month !== "*" || dom.length > 2) return s.when;
  if (hour === "*" && dom === "*" && dow === "*") {
    if (min === "*") return "each minute";
    if (step) return `every ${step[1]} minutes`;
    if (/^\d+$/.test(min)) return `each hour at :${min.padStart(2, "0")}${zone}`;
  }
  if (!/^\d+$/.test(min) || !/^\d+$/.test(hour)) return s.when;
  const at = `at ${hour.padStart(2, "0")}:${min.padStart(2, "0")}${zone}`;
  if (dom === "*" && dow === "*") return `each day ${at}`;
  if (dom === "*" && /^[0-7]$/.test(dow)) return `each ${days[Number(dow)]} ${at}`;
  if (dom === "*" && /^(1-5|MON-FRI)$/i.test(dow)) return `Monday to Friday ${at}`;
  if (dow === "*" && /^\d+$/.test(dom)) return `on day ${dom} of each month ${at}`;
  return s.when;
}

const scheduleHref = (name: string): string => href("schedules/" + encodeURIComponent(name));
const pauseOf = (s: Schedule) => s.paused && { at: s.paused.at, actor: s.paused.by ?? "", ...(s.paused.reason ? { reason: s.paused.reason } : {}) };
const path = (name: string, verb = ""): string => `v1/schedules/${segment(name)}${verb}`;
const runHref = (r: Run | undefined): string | undefined => (r?.task_id ? taskHref(r.task_id) : r?.job_id ? jobHref(r.job_id) : undefined);

function LastRun({ r }: { r: Run | undefined }) {
  if (!r) return <span class="muted">none yet</span>;
  const to = runHref(r);
  return (
    <>
      <Time at={r.at} /> {to && r.state ? <a href={to}><State state={r.state} /></a> : <span class="muted">removed</span>}
    </>
  );
}

const Runs = ({ s }: { s: Schedule }) => <Strip q={`label.weaver.schedule=${quoted(s.name)}`} job={s.task_type ? undefined : (s.job_name ?? "")} version={`${s.last?.at} ${s.last?.state}`} />;

export function Schedules() {
  const after = params.value.get("after") ?? "";
  const list = useLoad("schedules " + after, (s) => get<Page<Schedule>>("v1/schedules", { after, limit: 100 }, s), 5_000);
  return (
    <>
      <PageHead title="Schedules" sub="What is enqueued at which times.">
        {may("read", "operate", "submit") && (
          <Button icon="schedules" onClick={() => open(<NewSchedule after={list.reload} />)}>
            New schedule
          </Button>
        )}
      </PageHead>
      {list.problem && <ProblemBox problem={list.problem} retry={list.reload} />}
      <Section title="Schedules" aside={list.data ? plural(list.data.items.length, "schedule") : undefined}>
        {!list.data ? (
          !list.problem && <Loading />
        ) : list.data.items.length === 0 ? (
          <Empty title="There is no schedule.">
            Add one: <code>weaver schedule add NAME TYPE INPUT --cron "0 3 * * *" --timezone Europe/Berlin</code>
          </Empty>
        ) : (
          <Table
            label="Schedules"
            rows={list.data.items}
            id={(s) => s.name}
            columns={[
              { head: "Schedule", cell: (s) => <><Name to={scheduleHref(s.name)}>{s.name}</Name>{s.paused && <div class="small"><Paused pause={pauseOf(s)} /></div>}</> },
              { head: "Times", cell: (s) => <Text>{words(s)}</Text> },
              { head: "Enqueues", cell: (s) => <Text>{s.task_type ?? `the job ${s.job_name ?? ""}`}</Text> },
              { head: "Next", cell: (s) => (s.next ? <Time at={s.next} /> : "–") },
              { head: "Last", cell: (s) => <LastRun r={s.last} /> },
              { head: "Last 50 runs", cell: (s) => <Runs s={s} /> },
              mayOperate.value && { head: "Actions", hidden: true, num: true, cell: (s) => <PauseSchedule s={s} after={list.reload} small /> },
            ]}
          />
        )}
        <Pager next={list.data?.next} />
      </Section>
    </>
  );
}

function PauseSchedule({ s, after, small }: { s: Schedule; after: () => void; small?: boolean }) {
  const verb = s.paused ? "Resume" : "Pause";
  return (
    <Button
      small={small}
      icon={s.paused ? "play" : "pause"}
      aria-label={`${verb} ${s.name}`}
      onClick={() =>
        openVerb({
          title: `${verb} the schedule ${s.name}`,
          verb,
          keeps: s.paused ? "It fires from its next time on. The times of the pause do not fire." : "No time fires until it is resumed. Runs continue; times that wait for a run are skipped.",
          run: (r) => post(path(s.name, "/" + verb.toLowerCase()), because(r)),
          done: s.paused ? "The schedule goes on." : "The schedule is paused.",
          after,
        })
      }
    >
      {verb}
    </Button>
  );
}

const overlaps: Record<string, string> = { skip: "the time is skipped", queue: "the time waits for its end", cancel_running: "it is cancelled", allow: "a run starts beside it" };

export function OneSchedule({ id }: { id: string }) {
  const one = useLoad("schedule " + id, (s) => get<Schedule>(path(id), { upcoming: 5, limit: 1 }, s), 5_000);
  const after = params.value.get("after") ?? "";
  const fires = useLoad(`fires ${id} ${after}`, (s) => get<Page<Fire>>(path(id, "/fires"), { limit: 50, after }, s), after ? 0 : 5_000);
  const s = one.data;
  const reload = () => (one.reload(), fires.reload());
  const head = (
    <PageHead title={<Text>{id}</Text>} sub={<a href={href("schedules")}>Schedules</a>}>
      {s?.task_type && (
        <a class="button" href={tasksHref(`label.weaver.schedule=${quoted(id)}`)}>
          All its runs
        </a>
      )}
      {s && mayOperate.value && (
        <>
          <PauseSchedule s={s} after={reload} />
          <Button
            icon="play"
            onClick={() =>
              openVerb({
                title: `Run ${id} now`,
                verb: "Run now",
                keeps: `It enqueues ${s.tasks > 1 ? plural(s.tasks, "task") : "a run"} now, also while it is paused or a run has not ended. Its next time stays.`,
                run: (r) => post(path(id, "/trigger"), because(r)),
                done: "The run is enqueued.",
                link: (got) => runHref((got as Schedule).last),
                after: reload,
              })
            }
          >
            Run now
          </Button>
          <Button icon="retry" onClick={() => open(<Backfill s={s} after={reload} />)}>
            Backfill
          </Button>
          <Button
            icon="trash"
            onClick={() =>
              openVerb({
                title: `Delete the schedule ${id}`,
                verb: "Delete",
                danger: true,
                keeps: `The schedule and the records of its times are removed; its runs stay.${s.program ? ` The program ${s.program} declares it: it comes back when the program starts again.` : ""}`,
                run: (r) => del(path(id), { params: because(r) }),
                done: "The schedule is deleted.",
                after: () => go(href("schedules")),
              })
            }
          >
            Delete
          </Button>
        </>
      )}
    </PageHead>
  );
  if (!s)
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
      <Section title="Times">
        {s.paused && (
          <p class="notice">
            <Paused pause={pauseOf(s)} />
          </p>
        )}
        <Facts
          facts={[
            ["Rule", <><Text>{words(s)}</Text>{words(s) !== s.when && <div class="small muted"><code>{s.cron}</code></div>}</>],
            ["Next", s.next ? <><Time at={s.next} />{s.fires_at && s.fires_at !== s.next && <div class="small muted">with its delay <Time at={s.fires_at} /></div>}</> : s.paused ? "none while it is paused" : "none"],
            ["Then", (s.upcoming?.length ?? 0) > 1 ? <ul>{s.upcoming?.slice(1).map((t) => <li key={t}><Time at={t} /></li>)}</ul> : ""],
            ["Last run", <LastRun r={s.last} />],
            ["Wait for the last run", s.queued?.length ? plural(s.queued.length, "time") : ""],
            ["If the last run has not ended", overlaps[s.overlap] ?? s.overlap],
            ["A missed time fires up to", <>{s.catch_up} later</>],
            ["Delay of each", s.jitter ? `up to ${s.jitter}` : ""],
            ["Between", s.not_before || s.not_after ? <><Time at={s.not_before} /> and <Time at={s.not_after} /></> : ""],
          ]}
        />
      </Section>
      <Section title="Enqueues">
        <Facts
          facts={[
            ["Type", s.task_type ? <a href={typeHref(s.task_type)}><Text>{s.task_type}</Text></a> : ""],
            ["Job", s.task_type ? "" : <><a href={href("jobs", { name: s.job_name })}><Text>{s.job_name}</Text></a>, {plural(s.tasks, "task")}</>],
            ["Queue", s.queue ? <a href={queueHref(s.queue)}><Text>{s.queue}</Text></a> : ""],
            ["Declared by", s.program ? <Text>{`${s.program}${s.code_version ? ", version " + s.code_version : ""}`}</Text> : ""],
            ["Created", <Time at={s.created_at} />],
          ]}
        />
      </Section>
      <Section title="Last 50 runs">
        <div class="panel-body">
          <Runs s={s} />
        </div>
      </Section>
      <Section title="What became of its times" aside="newest first">
        {fires.problem ? (
          <ProblemBox problem={fires.problem} retry={fires.reload} />
        ) : !fires.data ? (
          <Loading />
        ) : fires.data.items.length === 0 ? (
          <Empty title="No time has come yet." />
        ) : (
          <Table
            label="Times of the schedule"
            rows={fires.data.items}
            id={(f) => f.at + f.kind + f.by}
            columns={[
              { head: "Time", cell: (f) => <><Time at={f.at} />{f.until && <> to <Time at={f.until} /></>}</> },
              { head: "Became", cell: (f) => <span class={"state " + (f.kind === "fired" ? "succeeded" : f.kind === "queued" ? "ready" : "")}><Icon name={f.kind === "fired" ? "check" : f.kind === "queued" ? "hourglass" : "right"} /> <span>{f.kind}{f.count > 1 ? `, ${number(f.count)} times` : ""}</span></span> },
              { head: "Run", cell: (f) => (f.task_id || f.job_id ? <ID id={f.task_id ?? f.job_id ?? ""} to={runHref(f)} /> : "–") },
              { head: "Reason", cell: (f) => <Text>{[f.by && "by " + f.by, f.reason].filter(Boolean).join(": ") || "–"}</Text> },
            ]}
          />
        )}
        <Pager next={fires.data?.next} />
      </Section>
    </>
  );
}

/** The text of a local or UTC time for an input, whose step is a minute: the browser refuses to send others. */
function inputTime(ms: number): string {
  const shift = timeZone.peek() === "utc" ? 0 : new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - shift).toISOString().slice(0, 16);
}

function Backfill({ s, after }: { s: Schedule; after: () => void }) {
  const [from, setFrom] = useState(() => inputTime(now.peek() - 86_400_000));
  const [to, setTo] = useState(() => inputTime(now.peek()));
  const [reason, setReason] = useState("");
  const [plan, setPlan] = useState("");
  const [problem, setProblem] = useState<Error | null>(null);
  const utc = timeZone.value === "utc";
  const iso = (v: string) => new Date(v + (utc ? "Z" : "")).toISOString();
  const ready = !Number.isNaN(Date.parse(from)) && !Number.isNaN(Date.parse(to));
  const request = (dry: boolean) => post<{ times: number; fired: number }>(path(s.name, "/backfill"), { from: iso(from), to: iso(to), ...(dry ? { dry_run: true } : because(reason.trim())) });
  const count = async () => {
    setProblem(null);
    setPlan("");
    try {
      const got = await request(true);
      setPlan(`The span has ${plural(got.times, "time")}: a run for each that has not fired.`);
    } catch (err) {
      setProblem(err as Error);
    }
  };
  const changed = (set: (v: string) => void) => (v: string) => (setPlan(""), set(v));
  return (
    <FormDialog
      title={`Backfill ${s.name}`}
      verb="Backfill"
      close={closeOpened}
      ready={ready}
      submit={async () => {
        setProblem(null);
        const got = await request(false);
        toast(`${plural(got.fired, "run")} enqueued for ${plural(got.times, "time")}.`);
        after();
      }}
    >
      <p class="dialog-text">It enqueues a run for each time of the span that has not fired. Times that have fired do not run again, even if their runs were removed.</p>
      <div class="field-row">
        <TextField label="From" type="datetime-local" value={from} set={changed(setFrom)} required help={utc ? "UTC" : "In this machine's time zone."} />
        <TextField label="To, not included" type="datetime-local" value={to} set={changed(setTo)} required />
      </div>
      <p class="field">
        <Button small disabled={!ready} onClick={() => void count()}>
          Count the times
        </Button>{" "}
        <span role="status">{plan}</span>
      </p>
      <ReasonField value={reason} set={setReason} />
      {problem && <ProblemBox problem={problem} />}
    </FormDialog>
  );
}
