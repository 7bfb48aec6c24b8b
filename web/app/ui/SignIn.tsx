import { useId, useState } from "preact/hooks";
import { demoMode, recentNames, signInByName, signInByToken, SignInError, type Account } from "../account.js";
import { errorText, useSpeech } from "../i18n.js";

export function SignIn({ done, compact }: { done: (a: Account) => void; compact?: boolean }) {
  const { t } = useSpeech();
  const id = useId();
  const [byToken, setByToken] = useState(!demoMode);
  const [value, setValue] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();

  const enter = async (text: string) => {
    if (!text.trim() || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      done(await (byToken ? signInByToken(text.trim()) : signInByName(text)));
    } catch (e) {
      setError(e instanceof SignInError ? e.code : "other");
      setBusy(false);
    }
  };
  const names = byToken || compact ? [] : recentNames();

  return (
    <div class={compact ? "sign-in compact" : "sign-in"}>
      <form
        class="card"
        onSubmit={(e) => {
          e.preventDefault();
          void enter(value);
        }}
      >
        {!compact && (
          <div class="brand">
            <img src="/logo.svg" alt="" width="56" height="56" />
            <h1>Xabar</h1>
            <p>{t.tagline}</p>
          </div>
        )}
        <label for={id}>{byToken ? t.signIn.token : t.signIn.yourName}</label>
        {byToken ? (
          <textarea id={id} rows={4} required spellcheck={false} autocomplete="off" value={value} aria-describedby={`${id}-hint`} onInput={(e) => setValue(e.currentTarget.value)} />
        ) : (
          <input id={id} required maxLength={100} autocomplete="nickname" autofocus={!compact} value={value} onInput={(e) => setValue(e.currentTarget.value)} />
        )}
        {byToken && <p class="hint" id={`${id}-hint`}>{t.signIn.tokenHint}</p>}
        {error && <p class="error" role="alert">{t.signIn.failed}. {errorText(t, error)}</p>}
        <button type="submit" class="primary" disabled={busy}>{t.signIn.start}</button>
        {names.length > 0 && (
          <div class="recent" role="group" aria-label={t.signIn.recent}>
            {names.map((name) => (
              <button type="button" class="chip" key={name} disabled={busy} onClick={() => void enter(name)}>
                <bdi>{name}</bdi>
              </button>
            ))}
          </div>
        )}
        <div class="links">
          {demoMode ? (
            <button type="button" class="link" onClick={() => (setByToken(!byToken), setValue(""), setError(undefined))}>
              {byToken ? t.signIn.withName : t.signIn.withToken}
            </button>
          ) : (
            <p class="hint">{t.signIn.notDemo}</p>
          )}
          {!compact && <a class="link" href="#/dev">{t.signIn.devView}</a>}
        </div>
        {!compact && demoMode && <p class="hint">{t.signIn.another}</p>}
      </form>
    </div>
  );
}
