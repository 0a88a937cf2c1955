// The dashboard's program.
import { render } from "preact";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { spoken } from "./lib/announce";
import { get, signedOut } from "./lib/api";
import { config } from "./lib/config";
import { startKeys } from "./lib/keys";
import { connection, startLive } from "./lib/live";
import { go, href, segments, startRouter } from "./lib/router";
import { features, loaded, loadSession, loginFromURL } from "./lib/session";
import { startClock } from "./lib/time";
import { pages } from "./pages";
import { Button, Empty, PageHead } from "./parts/basic";
import { open, opened, Toasts } from "./parts/dialog";
import { Sprite } from "./parts/icons";
import { openPalette, Palette } from "./parts/palette";
import { Banners, Brand, Foot, Login, MenuDialog, Nav, NotStarted, useNavKeys, type Page } from "./parts/shell";

const newer = signal(false);

/** Looks after each reconnect whether the server has other pages now. */
function watchVersion(): void {
  let opened = "";
  let last = 0;
  connection.subscribe((c) => {
    const now = `${c.mode} ${c.opened}`;
    if (now === opened || (c.mode !== "live" && c.mode !== "polling")) return;
    opened = now;
    if (c.mode === "polling" && Date.now() - last < 60_000) return;
    last = Date.now();
    if (!loaded.peek() && !signedOut.peek()) void loadSession();
    get<{ build: string }>("dashboard.json").then(
      (d) => (newer.value = d.build !== config.build),
      () => undefined, // it will be asked again after the next reconnect
    );
  });
}

function Current({ list }: { list: Page[] }) {
  const [name = "", id] = segments.value;
  const page = list.find((p) => p.name === name);
  useEffect(() => {
    document.title = [id ?? page?.title, config.title, "Weaver"].filter(Boolean).join(" · ");
  }, [name, id]);
  if (page && id !== undefined && page.one) return <page.one id={id} key={id} />;
  if (page && id === undefined) return <page.list />;
  return (
    <>
      <PageHead title="There is no such page" />
      <Empty title="Nothing is at this address.">
        <a href={href("")}>Go to the overview</a>
      </Empty>
    </>
  );
}

function Main() {
  const list = pages.filter((p) => !p.feature || features.value[p.feature]);
  useNavKeys(list, go);
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <Brand />
        <Button kind="plain" icon="search" label="Search" onClick={openPalette} />
        <Button
          kind="plain"
          icon="menu"
          label="Menu"
          onClick={() =>
            open(
              <MenuDialog>
                <Nav pages={list} close={() => (opened.value = null)} />
                <Foot />
              </MenuDialog>,
            )
          }
        />
      </header>
      <div class="side">
        <Brand />
        <button type="button" class="find" onClick={openPalette}>
          <span>Search</span>
          <kbd>Ctrl K</kbd>
        </button>
        <Nav pages={list} />
        <Foot />
      </div>
      <div class="content">
        <Banners newer={newer.value} />
        <main id="main" tabIndex={-1}>
          <Current list={list} />
        </main>
      </div>
      <Palette pages={list} />
    </div>
  );
}

function App() {
  return (
    <>
      <Sprite />
      {signedOut.value ? <Login /> : loaded.value ? <Main /> : <NotStarted retry={() => void loadSession()} />}
      {opened.value}
      <Toasts />
      <p class="visually-hidden" role="status">
        {spoken.value}
      </p>
    </>
  );
}

async function start(): Promise<void> {
  // Its address is resolved again when the path of the page changes.
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (icon) icon.href = icon.href;
  startRouter();
  startKeys();
  startClock();
  const app = document.getElementById("app");
  if (!app) return;
  await loginFromURL();
  void loadSession();
  startLive();
  watchVersion();
  render(<App />, app);
}

void start();
