import { PageHead } from "../parts/basic";

export function Tasks() {
  return <PageHead title="Tasks" />;
}
