// The audit: who did what, and why.
import { get } from "../lib/api";
import { useLoad } from "../lib/load";
import { href, jobHref, params, taskHref } from "../lib/router";
import type { AuditEntry, Page } from "../lib/types";
import { Empty, ID, Loading, PageHead, ProblemBox, Section, Text, Time } from "../parts/basic";
import { Filters, Name, Pager, Table } from "../parts/data";
import { queueHref } from "./queues";
import { typeHref } from "./types";

const verbs = ["retry", "cancel", "delete", "unblock", "signal", "repair", "rerun", "reschedule", "pause", "resume", "pause_type", "resume_type", "pause_task", "resume_task", "set_limit", "delete_limit", "put_schedule", "pause_schedule", "resume_schedule", "trigger_schedule", "backfill_schedule", "delete_schedule"];

/** The page of an entry's target. */
function link(e: AuditEntry): string {
  const target = e.target ?? "";
  if (target.startsWith("schedule/")) return href("schedules/" + encodeURIComponent(target.slice(9)));
  if (target.startsWith("order/")) return href("orders/" + encodeURIComponent(target.slice(6)));
  if (target.startsWith("limit/")) return href("limits");
  if (/^[0-9A-HJKMNP-TV-Z]{26}$/.test(target)) return e.verb.includes("job") ? jobHref(target) : taskHref(target);
  if (e.verb.endsWith("_type")) return typeHref(target);
  if (e.verb === "pause" || e.verb === "resume") return queueHref(target);
  return "";
}

export function Audit() {
  const p = params.value;
  const [target, actor, verb, after] = ["target", "actor", "verb", "after"].map((k) => p.get(k) ?? "");
  const any = target || actor || verb;
  const list = useLoad(`audit ${target} ${actor} ${verb} ${after}`, (s) => get<Page<AuditEntry>>("v1/audit", { target, actor, verb, after, limit: 100 }, s), after ? 0 : 5_000);
  return (
    <>
      <PageHead title="Audit" sub="What people and programs changed, newest first." />
      <Filters
        filters={[
          { name: "target", label: "Target", placeholder: "id, queue, type, schedule/NAME" },
          { name: "actor", label: "Actor" },
          { name: "verb", label: "Verb", suggest: verbs },
        ]}
      />
      {list.problem && <ProblemBox problem={list.problem} retry={list.reload} />}
      <Section title="Entries">
        {!list.data ? (
          !list.problem && <Loading />
        ) : list.data.items.length === 0 ? (
          <Empty title={any ? "No entry matches." : "Nobody has changed anything yet."}>{any && "Change the filters."}</Empty>
        ) : (
          <Table
            label="Audit"
            rows={list.data.items}
            id={(e, i) => String(e.id ?? i)}
            columns={[
              { head: "Verb", cell: (e) => e.verb.replaceAll("_", " ") },
              { head: "Target", cell: (e) => (/^[0-9A-Z]{26}$/.test(e.target ?? "") ? <ID id={e.target ?? ""} to={link(e)} /> : link(e) ? <Name to={link(e)}>{e.target ?? ""}</Name> : <Text>{e.target || "–"}</Text>) },
              { head: "Actor", cell: (e) => (e.actor ? <a href={href("audit", { actor: e.actor })}><Text>{e.actor}</Text></a> : "–") },
              { head: "Reason", cell: (e) => <Text>{e.reason || "–"}</Text> },
              { head: "At", cell: (e) => <Time at={e.at} /> },
            ]}
          />
        )}
        <Pager next={list.data?.next} />
      </Section>
    </>
  );
}
