// The pages, in the order of the navigation.
import type { Page } from "./parts/shell";
import { Overview } from "./pages/overview";
import { Tasks } from "./pages/tasks";

export const pages: Page[] = [
  { name: "", title: "Overview", icon: "overview", key: "o", list: Overview, group: "work" },
  { name: "tasks", title: "Tasks", icon: "tasks", key: "t", list: Tasks, group: "work" },
];
