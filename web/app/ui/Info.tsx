import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ChatClient, Conversation } from "../../client/src/index.js";
import { ApiError, type Api } from "../api.js";
import { errorText, useSpeech } from "../i18n.js";
import { Avatar } from "./Avatar.js";
import { Icon } from "./Icon.js";

/** Far enough away to mean: for good. */
const forever = "9999-01-01T00:00:00Z";

/** A panel beside the conversation, or over it where there is no room. */
export function Aside({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const { t } = useSpeech();
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  // Before anything is painted: the next key must not go to what stood there before.
  useLayoutEffect(() => {
    const before = document.activeElement;
    button.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <aside class="aside" aria-labelledby={id} onKeyDown={(e) => e.key === "Escape" && close()}>
      <header class="bar">
        <h2 class="grow" id={id}>{title}</h2>
        <button ref={button} type="button" class="round" aria-label={t.settings.close} onClick={close}><Icon name="close" /></button>
      </header>
      <div class="aside-body">{children}</div>
    </aside>
  );
}

interface Props {
  client: ChatClient;
  api: Api;
  conversation: Conversation;
  now: Date;
  close: () => void;
  left: () => void;
  openContact: (userId: string) => Promise<void>;
}

/** Who is in a conversation, and what can be done with it as a whole. */
export function Info({ client, api, conversation: c, now, close, left, openContact }: Props) {
  const speech = useSpeech();
  const { t } = speech;
  const [error, setError] = useState<string>();
  const [leaving, setLeaving] = useState(false);
  const muted = !!c.mutedUntil && new Date(c.mutedUntil) > now;
  const members = [...(client.members(c.id)?.values() ?? [])];
  const run = (ask: () => Promise<unknown>) => {
    setError(undefined);
    ask().catch((e: unknown) => setError(e instanceof ApiError ? e.code : "other"));
  };

  return (
    <Aside title={t.info.title} close={close}>
      <div class="card-head">
        <Avatar id={c.peer?.id ?? c.id} name={c.title} />
        <h3 dir="auto">{c.title}</h3>
        {c.kind === "group" && <p class="hint">{t.contacts.members(c.memberCount)}</p>}
      </div>
      {error && <p class="error" role="alert">{errorText(t, error)}</p>}
      <div class="stack">
        <button type="button" class="secondary" aria-pressed={muted} onClick={() => run(() => api.mute(c.id, muted ? null : forever))}>
          <Icon name={muted ? "bell" : "muted"} /> {muted ? t.info.unmute : t.info.mute}
        </button>
        {c.kind === "group" && !leaving && (
          <button type="button" class="secondary danger" onClick={() => setLeaving(true)}><Icon name="exit" /> {t.info.leave}</button>
        )}
        {leaving && (
          <div class="confirm" role="alertdialog" aria-label={t.info.leave}>
            <p>{t.info.reallyLeave}</p>
            <button type="button" class="secondary" onClick={() => setLeaving(false)}>{t.settings.cancel}</button>
            <button
              type="button"
              class="primary danger"
              onClick={() => run(async () => {
                await api.leave(c.id, client.userId!);
                left();
                client.forget(c.id);
              })}
            >
              {t.info.leave}
            </button>
          </div>
        )}
      </div>
      {c.kind === "group" && (
        <>
          <h3>{t.info.members}</h3>
          <ul class="people">
            {members.map((m) => (
              <li key={m.user.id}>
                <Avatar id={m.user.id} name={m.user.name} small />
                <div class="grow">
                  <p dir="auto">{m.user.name}</p>
                  {m.role !== "member" && <p class="hint">{t.info[m.role]}</p>}
                </div>
                {m.user.id === client.userId ? (
                  <span class="hint">{t.info.you}</span>
                ) : (
                  <button type="button" class="chip" onClick={() => void openContact(m.user.id).catch(() => setError("other"))}>{t.info.write}</button>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </Aside>
  );
}
