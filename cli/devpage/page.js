"use strict";
// The token is in the fragment, which no browser sends to a server.
const token = new URLSearchParams(location.hash.slice(1)).get("token") || "";
const at = id => document.getElementById(id);

async function get(path) {
  const answer = await fetch(path, { headers: { Authorization: "Bearer " + token } });
  if (answer.status === 401) throw new Error("the token in the address is not the one of this run: open the link that weaver dev printed");
  if (!answer.ok) throw new Error(path + ": " + answer.status);
  return answer.json();
}

function element(name, text, className) {
  const e = document.createElement(name);
  e.textContent = text;
  if (className) e.className = className;
  return e;
}

async function explain(id) {
  const why = await get("/v1/tasks/" + id + "/why");
  at("title").textContent = why.title;
  at("summary").textContent = why.summary;
  at("notes").replaceChildren(...(why.notes || []).map(note => element("li", note)));
  at("actions").replaceChildren(...(why.actions || []).map(action => {
    const item = document.createElement("li");
    item.append(element("code", action.command || ""), " " + (action.effect || ""));
    return item;
  }));
  at("why").hidden = false;
}

function row(task) {
  const tr = document.createElement("tr");
  const open = element("button", task.node || task.id);
  open.addEventListener("click", () => explain(task.id).catch(say));
  const name = document.createElement("td");
  name.append(open);
  tr.append(
    element("td", new Date(task.created_at).toLocaleTimeString()), name, element("td", task.task_type),
    element("td", task.state, task.state), element("td", task.attempt_count + "/" + task.max_attempts),
    element("td", task.error ? task.error.message.split("\n")[0] : ""));
  return tr;
}

function say(problem) { at("counts").textContent = String(problem.message || problem); }

async function look() {
  try {
    const [counts, page] = await Promise.all([get("/v1/counts"), get("/v1/tasks?limit=50")]);
    at("counts").textContent = Object.entries(counts.states || {}).filter(([, n]) => n.n > 0).map(([state, n]) => n.n + (n.more ? "+" : "") + " " + state).join(", ") || "no tasks";
    at("tasks").replaceChildren(...page.items.map(row));
    at("none").hidden = page.items.length > 0;
  } catch (problem) {
    say(problem);
  }
  setTimeout(look, document.hidden ? 10000 : 2000);
}

look();
