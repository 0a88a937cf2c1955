// The configuration that the server writes into the document.

export interface Link {
  name: string;
  url: string;
}

export interface Config {
  title: string;
  links: Link[];
  read_only: boolean;
  version: string;
  build: string;
  stream: string;
}

const html = document.documentElement;

export const config = JSON.parse(html.dataset["config"] ?? "{}") as Config;

/** The URL of the dashboard, with a slash at its end. It is read once: later paths have other depths. */
export const root = new URL(html.dataset["root"] ?? "./", location.href);
root.search = root.hash = "";
