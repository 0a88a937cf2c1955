import { connect } from "./weaver.js";

const weaver = connect();
const state = document.getElementById("state");
const show = () => (state.textContent = weaver.state.text || weaver.state.kind);
weaver.addEventListener("state", show);
show();

document.getElementById("start").onclick = async () => {
  const task = await weaver.enqueue("example.numbers.count.v1", 30).catch((err) => (state.textContent = err.message));
  if (task.id) weaver.persist();
};

weaver.watch(["tasks:type:example.numbers.count.v1"], (tasks) => {
  const list = document.getElementById("tasks");
  list.replaceChildren(
    ...tasks.map((t) => Object.assign(document.createElement("li"), { textContent: `${t.id}: ${t.state} ${t.progress?.current ?? 0} of ${t.progress?.total ?? "?"}` })),
  );
});
