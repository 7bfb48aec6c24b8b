import { useEffect, useId, useState } from "preact/hooks";
import type { ChatClient } from "../../client/src/index.js";
import { ApiError, type Api, type Me } from "../api.js";
import { useStored } from "../hooks.js";
import { errorText, language, languages, useSpeech, type Language } from "../i18n.js";
import { hasPush, permission, turnOffPush, turnOn } from "../notify.js";
import { theme, type Theme } from "../theme.js";
import { Dialog } from "./Dialog.js";
import { Icon } from "./Icon.js";

interface Props {
  client: ChatClient;
  api: Api;
  close: () => void;
  signOut: () => void;
  pane: boolean;
}

export function Settings({ client, api, close, signOut, pane }: Props) {
  const { t } = useSpeech();
  const id = useId();
  const [me, setMe] = useState<Me>();
  const [error, setError] = useState<string>();
  const [saved, setSaved] = useState(false);
  const run = (ask: () => Promise<unknown>) => {
    setError(undefined);
    setSaved(false);
    ask().catch((e: unknown) => setError(e instanceof ApiError ? e.code : "other"));
  };
  useEffect(() => {
    api.me().then(setMe, (e: unknown) => {
      // A gateway without this endpoint just has no such settings.
      if (!(e instanceof ApiError && e.status === 404)) setError(e instanceof ApiError ? e.code : "other");
    });
  }, [api]);

  return (
    <Dialog title={t.settings.title} close={close}>
      <div class="settings">
        <p class="hint"><bdi>{t.settings.signedInAs(client.session?.user.name ?? "")}</bdi></p>
        {error && <p class="error" role="alert">{errorText(t, error)}</p>}
        <label class="field" for={`${id}-language`}>
          <span>{t.settings.language}</span>
          <select id={`${id}-language`} value={useStored(language)} onChange={(e) => {
              language.set(e.currentTarget.value as Language);
              run(() => api.updateMe({ language: language.get() }));
            }}>
            {Object.entries(languages).map(([code, l]) => <option key={code} value={code} lang={code}>{l.name}</option>)}
          </select>
        </label>
        <label class="field" for={`${id}-theme`}>
          <span>{t.settings.theme}</span>
          <select id={`${id}-theme`} value={useStored(theme)} onChange={(e) => theme.set(e.currentTarget.value as Theme)}>
            {(["system", "light", "dark"] as const).map((x) => <option key={x} value={x}>{t.settings[x]}</option>)}
          </select>
        </label>
        <Notifications client={client} api={api} run={run} />
        {me && (
          <QuietHoursForm
            key={JSON.stringify(me.quiet_hours)}
            me={me}
            saved={saved}
            save={(quiet_hours) => run(async () => {
              setMe(await api.updateMe({ quiet_hours }));
              setSaved(true);
            })}
          />
        )}
        <footer class="dialog-foot">
          {!pane && <a class="secondary" href="#/dev"><Icon name="code" /> {t.settings.developer}</a>}
          <button
            type="button"
            class="secondary danger"
            onClick={() => {
              void turnOffPush(api).catch(() => {}); // the server drops a dead endpoint by itself
              signOut();
            }}
          >
            <Icon name="exit" /> {t.settings.signOut}
          </button>
        </footer>
      </div>
    </Dialog>
  );
}

function Notifications({ client, api, run }: { client: ChatClient; api: Api; run: (ask: () => Promise<unknown>) => void }) {
  const { t } = useSpeech();
  const [state, setState] = useState(permission());
  const hint = { on: hasPush(client) ? t.settings.notifyPush : t.settings.notifyHere, off: hasPush(client) ? t.settings.notifyPush : t.settings.notifyHere, denied: t.settings.notifyDenied, insecure: t.settings.notifyInsecure };
  return (
    <div class="field">
      <span>{t.settings.notifications}<span class="hint block">{hint[state]}</span></span>
      {state === "off" && <button type="button" class="secondary" onClick={() => run(() => turnOn(client, api).finally(() => setState(permission())))}>{t.settings.notifyOn}</button>}
      {state === "on" && <Icon name="check" class="accent" />}
    </div>
  );
}

function QuietHoursForm({ me, save, saved }: { me: Me; save: (q: Me["quiet_hours"]) => void; saved: boolean }) {
  const { t } = useSpeech();
  const [on, setOn] = useState(me.quiet_hours !== null);
  const [from, setFrom] = useState(me.quiet_hours?.from ?? "22:00");
  const [until, setUntil] = useState(me.quiet_hours?.until ?? "07:00");
  return (
    <form
      class="quiet"
      onSubmit={(e) => {
        e.preventDefault();
        save(on ? { from, until, time_zone: me.quiet_hours?.time_zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone } : null);
      }}
    >
      <fieldset>
        <legend>{t.settings.quiet}</legend>
        <p class="hint">{t.settings.quietHint}</p>
        <label class="check"><input type="checkbox" checked={on} onChange={(e) => setOn(e.currentTarget.checked)} /> {t.settings.quietOn}</label>
        <div class="times">
          <label>{t.settings.from} <input type="time" required disabled={!on} value={from} onInput={(e) => setFrom(e.currentTarget.value)} /></label>
          <label>{t.settings.until} <input type="time" required disabled={!on} value={until} onInput={(e) => setUntil(e.currentTarget.value)} /></label>
          <button type="submit" class="secondary">{t.settings.save}</button>
          <span class="hint" role="status">{saved && t.settings.saved}</span>
        </div>
      </fieldset>
    </form>
  );
}
