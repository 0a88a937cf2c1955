// Loaded by the pages of the dashboard before their own script, in a folder of `weaver browser build`: what they ask
// the API of a server goes to the program in the tab.
"use strict";

(() => {
  const root = new URL(document.documentElement.dataset.root, location.href).href; // of the dashboard
  const program = import(new URL("./weaver.js", document.currentScript.src).href).then((m) => m.connect());
  const network = globalThis.fetch.bind(globalThis);
  const toProgram = (url) => url.startsWith(root + "v1/") || url === root + "openapi.json";

  globalThis.fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input, location.href).href;
    if (!toProgram(url)) return network(input, init);
    return (await program).fetch(url.slice(root.length), input instanceof Request ? { method: input.method, headers: input.headers, signal: input.signal, ...init } : init);
  };

  // A shared worker has a fetch of its own; without it the page streams by itself.
  Object.defineProperty(globalThis, "SharedWorker", { value: undefined, configurable: true });

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
