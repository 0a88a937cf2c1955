// Measures Weaver: ?what=cold|step|seq&n=N. The result goes to /result: milliseconds from the navigation to the end of the
// first task for cold, else per second.
import { connect } from "./weaver.js";

const weaver = connect();
const { what, n } = Object.fromEntries(new URLSearchParams(location.search));

async function ended(id) {
  for (;;) {
    const task = await weaver.json("GET", `v1/tasks/${id}?wait=60s`);
    if (task.state === "succeeded") return;
    if (task.state !== "running" && task.state !== "pending") throw new Error(JSON.stringify(task));
  }
}

async function measure() {
  const first = await weaver.enqueue("bench.tab.step.v1", 1);
  await ended(first.id);
  if (what === "cold") return performance.now();
  const begin = performance.now();
  if (what === "seq") {
    await ended((await weaver.enqueue("bench.tab.sequence.v1", Number(n))).id);
  } else {
    for (let i = 0; i < n; i += 500) {
      const tasks = Array.from({ length: Math.min(500, n - i) }, (_, k) => ({ task_type: "bench.tab.step.v1", input: i + k }));
      await weaver.json("POST", "v1/tasks/batch", { tasks });
    }
    for (;;) {
      const { states } = await weaver.json("GET", "v1/counts");
      if (states.succeeded.n > n) break;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  return (n / (performance.now() - begin)) * 1000;
}

measure().then((value) => ({ value }), (err) => ({ error: String(err.stack ?? err) })).then((result) => fetch("/result", { method: "POST", body: JSON.stringify(result) }));
