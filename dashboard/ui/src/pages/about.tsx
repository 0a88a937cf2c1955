// Versions, access, features and licences.
import { config, root } from "../lib/config";
import { connection } from "../lib/live";
import { features, me, namespace } from "../lib/session";
import { Button, Copy, Facts, PageHead, Section, Text } from "../parts/basic";
import { open } from "../parts/dialog";
import { Icon } from "../parts/icons";
import { Settings, Shortcuts } from "../parts/shell";

const featureWords: Record<string, string> = {
  bulk: "verbs for many tasks", command_logs: "output of commands", events: "stream of events", explanations: "why a task waits or failed", graph: "graph of a job", limits: "limits", login: "login with a token", metrics: "metrics for Prometheus",
  orders: "orders", recorded_events: "recorded events", schedules: "schedules", stats: "statistics of attempts", types: "announced types", watch: "live pages",
};

const accessWords: [string, string][] = [["read", "see tasks without their values"], ["payloads", "see values"], ["submit", "enqueue tasks"], ["operate", "retry, cancel, pause and the like"]];

function Yes({ on, children }: { on: boolean; children: string }) {
  return (
    <li class={"state " + (on ? "succeeded" : "")}>
      <Icon name={on ? "check" : "cross"} /> <span>{children}</span>
      <span class="visually-hidden">: {on ? "yes" : "no"}</span>
    </li>
  );
}

export function About() {
  const modes: Record<string, string> = { live: "one stream for all tabs", polling: "requests every 3 s: streams do not pass", lost: "no connection", connecting: "connecting", refused: "refused" };
  return (
    <>
      <PageHead title="About">
        <Button onClick={() => open(<Settings />)} icon="sun">
          Settings
        </Button>
        <Button onClick={() => open(<Shortcuts />)}>Shortcuts</Button>
      </PageHead>
      <Section title="Versions">
        <Facts
          facts={[
            ["Program", config.version ? <><Text>{config.version}</Text> <Copy text={config.version} label="Copy the version" /></> : "not known"],
            ["Pages", <span class="mono">{config.build}</span>],
            ["Namespace", <Text>{namespace.value}</Text>],
            ["Installation", config.title ? <Text>{config.title}</Text> : ""],
            ["Data arrives by", modes[connection.value.mode] ?? ""],
            ["API", <a href={new URL("openapi.json", root).href}>openapi.json</a>],
          ]}
        />
      </Section>
      <div class="two">
        <Section title="Your access" aside={me.value?.name}>
          <ul class="panel-body yes-list">
            {accessWords.map(([a, text]) => (
              <Yes key={a} on={!!me.value?.access.includes(a as "read") && !(config.read_only && (a === "submit" || a === "operate"))}>{`${a}: ${text}`}</Yes>
            ))}
          </ul>
          {config.read_only && <p class="notice">This dashboard is read-only: its configuration refuses changes.</p>}
        </Section>
        <Section title="Features of this server">
          <ul class="panel-body yes-list">
            {Object.entries(features.value).map(([f, on]) => (
              <Yes key={f} on={on}>
                {featureWords[f] ?? f.replaceAll("_", " ")}
              </Yes>
            ))}
          </ul>
        </Section>
      </div>
      <Section title="Licences">
        <p class="panel-body">
          The pages contain Preact and Preact Signals, both under the MIT licence: <a href={new URL("assets/licenses.txt", root).href}>their texts</a>.
        </p>
      </Section>
    </>
  );
}
