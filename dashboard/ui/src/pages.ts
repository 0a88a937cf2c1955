// The pages, in the order of the navigation.
import { Inbox } from "./pages/inbox";
import { Overview } from "./pages/overview";
import { Tasks } from "./pages/tasks";
import type { Page } from "./parts/shell";

export const pages: Page[] = [
  { name: "", title: "Overview", icon: "overview", key: "o", list: Overview, group: "work" },
  { name: "inbox", title: "Inbox", icon: "inbox", key: "i", list: Inbox, group: "work" },
  { name: "tasks", title: "Tasks", icon: "tasks", key: "t", list: Tasks, group: "work" },
];
