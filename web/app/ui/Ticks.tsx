import type { Tick } from "../../client/src/index.js";
import { useSpeech } from "../i18n.js";
import { Icon } from "./Icon.js";

/** How far a message has come: on its way, one tick, two ticks, two in blue. */
export type Progress = Tick | "waiting" | "sending" | "failed";

const icons = { waiting: "clock", sending: "clock", failed: "alert", sent: "check", delivered: "checks", read: "checks" } as const;

export function Ticks({ progress }: { progress: Progress }) {
  const { t } = useSpeech();
  return (
    <span class={`ticks ${progress}`} data-tick={progress} role="img" aria-label={t.message[progress]} title={t.message[progress]}>
      <Icon name={icons[progress]} />
    </span>
  );
}
