// Loaded by the pages of the dashboard before their own script, in a folder of `weaver browser build`: what they ask
// the API of a server goes to the program in the tab.
"use strict";

(() => {
  const root = new URL(document.documentElement.dataset.root, location.href).href; // of the dashboard
  const shown = "weaver:capsule"; // in the storage of this tab: the name and the file name of the capsule that it shows
  const closed = "weaver:closed"; // the name of a capsule that is not shown any more
  const capsule = JSON.parse(sessionStorage.getItem(shown) ?? "null");
  const module = import(new URL("./weaver.js", document.currentScript.src).href);
  const program = module.then((m) => m.connect({ capsule: capsule?.name }));
  const network = globalThis.fetch.bind(globalThis);
  const toProgram = (url) => url.startsWith(root + "v1/") || url === root + "openapi.json";

  globalThis.fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input, location.href).href;
    if (!toProgram(url)) return network(input, init);
    return (await program).fetch(url.slice(root.length), input instanceof Request ? { method: input.method, headers: input.headers, signal: input.signal, ...init } : init);
  };

  // A shared worker has a fetch of its own; without it the page streams by itself.
  Object.defineProperty(globalThis, "SharedWorker", { value: undefined, configurable: true });

  const banner = (text, bad) => {
    const line = Object.assign(document.createElement("p"), { className: bad ? "banner bad" : "banner", textContent: text });
    line.setAttribute("role", bad ? "alert" : "status");
    document.body.prepend(line);
    return line;
  };

  // A capsule that is dropped on a page is shown in this tab until it is closed.
  addEventListener("dragover", (ev) => ev.preventDefault());
  addEventListener("drop", async (ev) => {
    ev.preventDefault();
    const file = ev.dataTransfer.files[0];
    if (!file) return;
    try {
      sessionStorage.setItem(shown, JSON.stringify({ name: await (await module).openCapsule(file), file: file.name }));
      location.assign(root);
    } catch (err) {
      banner(err.message, true);
    }
  });
  const old = sessionStorage.getItem(closed);
  if (old && old !== capsule?.name) {
    sessionStorage.removeItem(closed);
    setTimeout(async () => (await module).closeCapsule(old), 5000); // its worker has ended by then; another tab that shows it keeps it
  }
  if (capsule) {
    addEventListener("DOMContentLoaded", async () => {
      const line = banner(`${capsule.file} is a capsule, a copy of tasks: nothing runs or changes in it. `);
      const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close the capsule" });
      close.onclick = () => {
        sessionStorage.removeItem(shown);
        sessionStorage.setItem(closed, capsule.name);
        location.assign(root);
      };
      line.append(close);
      const weaver = await program;
      const told = () => weaver.state.kind === "failed" && banner(`${capsule.file}: ${weaver.state.text}`, true);
      weaver.addEventListener("state", told);
      told();
    });
  }

  // Files are downloaded by links.
  document.addEventListener(
    "click",
    async (ev) => {
      const link = ev.target instanceof Element ? ev.target.closest("a[href]") : null;
      if (!link || !toProgram(link.href) || ev.button !== 0) return;
      ev.preventDefault();
      ev.stopImmediatePropagation();
      const res = await globalThis.fetch(link.href);
      const file = URL.createObjectURL(await res.blob());
      const name = /filename\*?=(?:UTF-8'')?"?([^";]+)/i.exec(res.headers.get("Content-Disposition") ?? "")?.[1];
      const save = Object.assign(document.createElement("a"), { href: file, download: name ? decodeURIComponent(name) : "download" });
      save.click();
      setTimeout(() => URL.revokeObjectURL(file), 60_000);
    },
    true,
  );
})();
