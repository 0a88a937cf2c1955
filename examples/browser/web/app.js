import { connect, openCapsule } from "./weaver.js";

const weaver = connect();
const $ = (id) => document.getElementById(id);
const type = "example.payments.import.v1";

function show() {
  const { kind, here, text } = weaver.state;
  $("state").textContent = kind === "running" ? (here ? "Ready: the program runs in this tab." : "Ready.") : kind === "failed" ? text : "Starting…";
  $("state").className = kind;
}
weaver.addEventListener("state", show);
show();

const start = (name, csv) =>
  attempt(async () => {
    await weaver.enqueue(type, { name, csv });
    weaver.persist();
  });

$("file").onchange = async (ev) => {
  for (const f of ev.target.files) await start(f.name, await f.text());
};
addEventListener("dragover", (ev) => ev.preventDefault());
addEventListener("drop", async (ev) => {
  ev.preventDefault();
  for (const f of ev.dataTransfer.files) await start(f.name, await f.text());
});
$("sample").onclick = () => {
  const lines = ["date,payee,amount"];
  for (let i = 1; i <= 2000; i++) lines.push(`2026-11-${String((i % 28) + 1).padStart(2, "0")},Payee ${i % 40},${(i % 97) + 0.25}`);
  start("sample.csv", lines.join("\n"));
};

$("backup").onclick = () =>
  attempt(async () => {
    const file = await weaver.backup();
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(file), download: file.name });
    link.click();
  });
$("restore").onchange = (ev) =>
  attempt(async () => {
    const replace = confirm("Replace everything here by this backup?");
    if (replace) await weaver.restore(ev.target.files[0], { replace });
    ev.target.value = "";
  });
$("capsule").onchange = (ev) =>
  attempt(async () => {
    const file = ev.target.files[0];
    sessionStorage.setItem("weaver:capsule", JSON.stringify({ name: await openCapsule(file), file: file.name }));
    location.assign("dashboard/");
  });

/** Does something, and says why if it fails. */
async function attempt(what) {
  try {
    await what();
  } catch (err) {
    $("state").textContent = err.message;
    $("state").className = "failed";
  }
}

/** One line for each import: its state in words, its progress, and a button where it waits for one. */
weaver.watch([`tasks:type:${type}`], (tasks) => {
  tasks.sort((a, b) => (a.id < b.id ? 1 : -1));
  $("imports").replaceChildren(...tasks.map(line));
});

function line(t) {
  const li = document.createElement("li");
  li.id = t.id;
  li.dataset.state = t.state;
  const done = t.progress?.current ?? 0;
  const all = t.progress?.total ?? 0;
  const words = { succeeded: "done", failed: "failed", pending: "waits", running: "works", ready: "is next", blocked: "is blocked", cancelled: "was cancelled" };
  const link = Object.assign(document.createElement("a"), { href: `dashboard/tasks/${t.id}`, textContent: `Import ${t.id.slice(-6)}` });
  li.append(link, ` ${words[t.state] ?? t.state}${t.error ? `: ${t.error.message}` : ""}`);
  if (all > 0) li.append(Object.assign(document.createElement("progress"), { value: done, max: all, ariaLabel: "Progress" }));
  if (t.waiting_reason === "signal") {
    const yes = Object.assign(document.createElement("button"), { textContent: "Confirm" });
    yes.onclick = () => weaver.signal(t.id, "confirmed", true, "confirmed");
    li.append(" ", yes);
  }
  return li;
}
