// The pages, in the order of the navigation.
import { Inbox } from "./pages/inbox";
import { Overview } from "./pages/overview";
import { TaskPage } from "./pages/task";
import { Tasks } from "./pages/tasks";
import type { Page } from "./parts/shell";
import { Jobs, OneJob } from "./pages/jobs";
import { About } from "./pages/about";
import { Audit } from "./pages/audit";
import { Events } from "./pages/events";
import { OneOrder, Orders } from "./pages/orders";
import { OneSchedule, Schedules } from "./pages/schedules";
import { OneQueue, Queues } from "./pages/queues";
import { Workers } from "./pages/workers";
import { OneType, Types } from "./pages/types";
import { Limits } from "./pages/limits";

export const pages: Page[] = [
  { name: "", title: "Overview", icon: "overview", key: "o", list: Overview, group: "work" },
  { name: "inbox", title: "Inbox", icon: "inbox", key: "i", list: Inbox, group: "work" },
  { name: "tasks", title: "Tasks", icon: "tasks", key: "t", list: Tasks, one: TaskPage, group: "work" },
  { name: "jobs", title: "Jobs", icon: "jobs", key: "j", list: Jobs, one: OneJob, group: "work" },
  { name: "queues", title: "Queues", icon: "queues", key: "q", list: Queues, one: OneQueue, group: "work" },
  { name: "schedules", title: "Schedules", icon: "schedules", key: "s", list: Schedules, one: OneSchedule, feature: "schedules", group: "work" },
  { name: "orders", title: "Orders", icon: "orders", key: "r", list: Orders, one: OneOrder, feature: "orders", group: "work" },
  { name: "workers", title: "Workers", icon: "workers", key: "w", list: Workers, group: "system" },
  { name: "types", title: "Types", icon: "types", key: "y", list: Types, one: OneType, feature: "types", group: "system" },
  { name: "limits", title: "Limits", icon: "limits", key: "l", list: Limits, feature: "limits", group: "system" },
  { name: "events", title: "Events", icon: "events", key: "e", list: Events, feature: "events", group: "system" },
  { name: "audit", title: "Audit", icon: "audit", key: "a", list: Audit, group: "system" },
  { name: "about", title: "About", icon: "about", list: About, group: "system" },
];
