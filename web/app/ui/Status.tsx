import { useEffect, useState } from "preact/hooks";
import type { ChatClient } from "../../client/src/index.js";
import { errorText, useSpeech } from "../i18n.js";
import { Icon } from "./Icon.js";

/** The connection, whenever it is not simply there. Said aloud too. */
export function Status({ client, signOut }: { client: ChatClient; signOut: () => void }) {
  const { t } = useSpeech();
  const state = client.connection;
  const waiting = client.waitingCount;
  const [restored, setRestored] = useState(false);
  useEffect(() => client.events.on("reset", () => setRestored(true)), [client]);
  return (
    <div class={`status ${state.status}`} data-connection={state.status} role="status">
      {state.status !== "online" && (
        <>
          <Icon name={state.status === "refused" ? "alert" : "wifi"} />
          <span>
            {t.status[state.status]}
            {state.status === "refused" && `. ${errorText(t, state.code)}`}
            {waiting > 0 && state.status !== "refused" && ` ${t.status.waiting(waiting)}.`}
          </span>
          {state.status === "refused" && (
            <button type="button" class="link" onClick={signOut}>{t.status.signInAgain}</button>
          )}
        </>
      )}
      {state.status === "online" && restored && (
        <>
          <Icon name="alert" />
          <span data-restored>{t.status.restored}</span>
          <button type="button" class="link" onClick={() => setRestored(false)}>{t.status.understood}</button>
        </>
      )}
    </div>
  );
}
