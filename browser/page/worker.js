// The dedicated worker in which a program of Weaver runs: it gives Go the files of the origin private file system
// (OPFS), and starts it. weaver.js starts the worker and sends it one message: {exec, wasm, args, env}.
"use strict";

(() => {
  const tell = (m) => postMessage(m);

  /** A failure of a file operation, with the code that Go's package syscall knows. */
  const fail = (code, message) => Object.assign(new Error(message ?? code), { code });

  const codes = {
    NotFoundError: "ENOENT",
    TypeMismatchError: "ENOTDIR",
    InvalidModificationError: "ENOTEMPTY",
    NoModificationAllowedError: "EBUSY",
    QuotaExceededError: "ENOSPC",
    NotAllowedError: "EACCES",
    SecurityError: "EACCES",
    TypeError: "EINVAL",
  };

  const known = (err) => (err.code && typeof err.code === "string" ? err : fail(codes[err.name] ?? "EIO", err.message));

  const constants = { O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, O_DIRECTORY: 65536, O_SYNC: 0 };
  const modeFile = 0o100600;
  const modeDir = 0o40700;

  let cwd = "/";
  let root; // the directory of the origin

  /** The parts of a path, without "." and "..". */
  function parts(path) {
    const out = [];
    for (const p of (path.startsWith("/") ? path : cwd + "/" + path).split("/")) {
      if (p === "..") out.pop();
      else if (p !== "" && p !== ".") out.push(p);
    }
    return out;
  }

  async function dirAt(list) {
    root ??= await navigator.storage.getDirectory();
    let dir = root;
    for (const p of list) dir = await dir.getDirectoryHandle(p);
    return dir;
  }

  /** The directory of a path, and its last name. */
  async function parent(path) {
    const list = parts(path);
    const name = list.pop();
    return { dir: await dirAt(list), name, key: "/" + [...list, name].join("/") };
  }

  /** The handle of what is at a path. */
  async function at(path) {
    const list = parts(path);
    if (list.length === 0) return dirAt([]);
    const name = list.pop();
    const dir = await dirAt(list);
    try {
      return await dir.getFileHandle(name);
    } catch (err) {
      if (err.name !== "TypeMismatchError") throw err;
      return dir.getDirectoryHandle(name);
    }
  }

  // One handle serves all descriptors of a file, because only one can be open.
  const nodes = new Map(); // by path: {file, sync, refs, key, gone}
  const fds = new Map(); // {node, pos, flags} or {dir}
  let nextFD = 3;

  async function openNode(key, file) {
    let node = nodes.get(key);
    if (!node) {
      node = { file, key, refs: 0, gone: false };
      node.opening = file.createSyncAccessHandle().then((h) => (node.sync = h));
      nodes.set(key, node);
    }
    node.refs++;
    try {
      await node.opening;
    } catch (err) {
      drop(node);
      throw err;
    }
    return node;
  }

  function drop(node) {
    if (--node.refs > 0) return;
    if (nodes.get(node.key) === node) nodes.delete(node.key);
    if (!node.gone) node.sync?.close();
  }

  function lose(node) {
    node.gone = true;
    nodes.delete(node.key);
    node.sync?.close();
  }

  const stat = (mode, size, time) => ({
    dev: 1, ino: 0, mode, nlink: 1, uid: 0, gid: 0, rdev: 0, size, blksize: 4096, blocks: Math.ceil(size / 512),
    atimeMs: time, mtimeMs: time, ctimeMs: time,
    isDirectory: () => (mode & 0o170000) === 0o40000,
  });

  async function statPath(path) {
    const h = await at(path);
    if (h.kind === "directory") return stat(modeDir, 0, 0);
    const node = nodes.get("/" + parts(path).join("/"));
    if (node?.sync && !node.gone) return stat(modeFile, node.sync.getSize(), node.written ?? Date.now());
    const f = await h.getFile();
    return stat(modeFile, f.size, f.lastModified);
  }

  function open(fd) {
    const d = fds.get(fd);
    if (!d) throw fail("EBADF");
    if (d.node?.gone) throw fail("EIO", "the file was removed");
    return d;
  }

  const calls = {
    async open(path, flags) {
      const fd = nextFD++;
      const list = parts(path);
      if (list.length === 0) {
        fds.set(fd, { dir: await dirAt([]), path: "/" });
        return fd;
      }
      const { dir, name, key } = await parent(path);
      let file;
      try {
        file = await dir.getFileHandle(name);
        if (flags & constants.O_EXCL && flags & constants.O_CREAT) throw fail("EEXIST");
      } catch (err) {
        if (err.name === "TypeMismatchError") {
          if (flags & (constants.O_WRONLY | constants.O_RDWR)) throw fail("EISDIR");
          fds.set(fd, { dir: await dir.getDirectoryHandle(name), path });
          return fd;
        }
        if (err.name !== "NotFoundError" || !(flags & constants.O_CREAT)) throw err;
        file = await dir.getFileHandle(name, { create: true });
      }
      if (flags & constants.O_DIRECTORY) throw fail("ENOTDIR");
      const node = await openNode(key, file);
      if (flags & constants.O_TRUNC) node.sync.truncate(0);
      fds.set(fd, { node, pos: 0, flags });
      return fd;
    },
    async close(fd) {
      const d = fds.get(fd);
      if (!d) throw fail("EBADF");
      fds.delete(fd);
      if (d.node) drop(d.node);
    },
    async read(fd, buffer, offset, length, position) {
      const d = open(fd);
      if (!d.node) throw fail("EISDIR");
      const n = d.node.sync.read(buffer.subarray(offset, offset + length), { at: position ?? d.pos });
      if (position === null) d.pos += n;
      return n;
    },
    async write(fd, buffer, offset, length, position) {
      const bytes = buffer.subarray(offset, offset + length);
      if (fd === 1 || fd === 2) {
        print(fd, bytes);
        return length;
      }
      const d = open(fd);
      if (!d.node) throw fail("EBADF");
      let to = position ?? d.pos;
      if (d.flags & constants.O_APPEND) to = d.node.sync.getSize();
      const n = d.node.sync.write(bytes, { at: to });
      d.node.written = Date.now();
      if (position === null) d.pos = to + n;
      if (n < length) throw fail("ENOSPC");
      return n;
    },
    async fsync(fd) {
      open(fd).node?.sync.flush();
    },
    async fstat(fd) {
      if (fd < 3) return stat(0o20600, 0, 0);
      const d = open(fd);
      return d.node ? stat(modeFile, d.node.sync.getSize(), d.node.written ?? (await d.node.file.getFile()).lastModified) : stat(modeDir, 0, 0);
    },
    async ftruncate(fd, size) {
      open(fd).node.sync.truncate(size);
    },
    async truncate(path, size) {
      const fd = await calls.open(path, constants.O_RDWR);
      try {
        await calls.ftruncate(fd, size);
      } finally {
        await calls.close(fd);
      }
    },
    stat: statPath,
    lstat: statPath,
    async mkdir(path) {
      const { dir, name } = await parent(path);
      if (name === undefined) throw fail("EEXIST");
      const there = await at(path).then(() => true, () => false);
      if (there) throw fail("EEXIST");
      await dir.getDirectoryHandle(name, { create: true });
    },
    async readdir(path) {
      const names = [];
      for await (const name of (await dirAt(parts(path))).keys()) names.push(name);
      return names;
    },
    async unlink(path) {
      const { dir, name, key } = await parent(path);
      await dir.getFileHandle(name).catch((err) => {
        throw err.name === "TypeMismatchError" ? fail("EISDIR") : err;
      });
      const node = nodes.get(key);
      if (node) lose(node);
      await dir.removeEntry(name);
    },
    async rmdir(path) {
      const { dir, name } = await parent(path);
      await dir.getDirectoryHandle(name);
      await dir.removeEntry(name);
    },
    async rename(from, to) {
      const a = await parent(from);
      const b = await parent(to);
      if (a.key === b.key) return;
      const h = await a.dir.getFileHandle(a.name);
      const moving = nodes.get(a.key);
      if (moving) moving.sync.close();
      const replaced = nodes.get(b.key);
      if (replaced) lose(replaced);
      try {
        await h.move(b.dir, b.name);
      } finally {
        if (moving) {
          nodes.delete(a.key);
          moving.key = b.key;
          moving.file = await b.dir.getFileHandle(b.name);
          moving.sync = await moving.file.createSyncAccessHandle();
          nodes.set(b.key, moving);
        }
      }
    },
    async chmod() {},
    async fchmod() {},
    async chown() {},
    async fchown() {},
    async lchown() {},
    async utimes() {},
    async link() {
      throw fail("ENOSYS", "there are no links");
    },
    async symlink() {
      throw fail("ENOSYS", "there are no links");
    },
    async readlink(path) {
      await at(path);
      throw fail("EINVAL", "not a link");
    },
  };

  // What Go prints comes in parts of lines.
  const texts = { 1: "", 2: "" };
  const decoders = { 1: new TextDecoder(), 2: new TextDecoder() };
  function print(fd, bytes) {
    texts[fd] += decoders[fd].decode(bytes, { stream: true });
    const end = texts[fd].lastIndexOf("\n");
    if (end < 0) return;
    tell({ kind: "output", fd, text: texts[fd].slice(0, end + 1) });
    texts[fd] = texts[fd].slice(end + 1);
  }

  const fs = {
    constants,
    writeSync(fd, bytes) {
      print(fd === 1 ? 1 : 2, bytes);
      return bytes.length;
    },
  };
  for (const [name, call] of Object.entries(calls)) {
    fs[name] = (...args) => {
      const done = args.pop();
      call(...args).then((v) => done(null, v), (err) => done(known(err)));
    };
  }
  globalThis.fs = fs;
  globalThis.process = {
    getuid: () => 0, getgid: () => 0, geteuid: () => 0, getegid: () => 0, getgroups: () => [], pid: 1, ppid: 0, umask: () => 0,
    cwd: () => cwd,
    chdir(dir) {
      cwd = "/" + parts(dir).join("/");
    },
  };
  globalThis.path = { resolve: (...list) => "/" + list.flatMap((p) => parts(p)).join("/") };

  onmessage = async (ev) => {
    if (ev.data?.kind !== "start") return; // Go takes the messages from its start on
    const { exec, wasm, args, env } = ev.data;
    const loading = (file, err) =>
      new Error(`${file} cannot be loaded (${err.message}). It was cut short on the way, or changed: load the page again; if that does not help, upload the folder of \`weaver browser build\` again.`);
    try {
      try {
        importScripts(exec);
      } catch (err) {
        throw loading(exec, err);
      }
      root = await navigator.storage.getDirectory().catch((err) => {
        throw new Error(`The browser gives this page no files (${err.message}). A private window, or a setting against cookies and site data, may be the reason.`);
      });
      env.TMPDIR ??= "/tmp";
      await root.getDirectoryHandle("tmp", { create: true });
      const go = new Go();
      go.argv = args;
      go.env = env;
      go.exit = (code) => tell({ kind: "ended", code });
      const res = await fetch(wasm).catch((err) => {
        throw loading(wasm, err);
      });
      if (!res.ok) throw new Error(`${wasm}: the server answered ${res.status}`);
      const program = await WebAssembly.instantiateStreaming(res, go.importObject).catch((err) => {
        throw loading(wasm, err);
      });
      await go.run(program.instance);
      tell({ kind: "ended", code: 0 });
    } catch (err) {
      tell({ kind: "failed", text: String(err?.message ?? err) });
    }
  };
})();
