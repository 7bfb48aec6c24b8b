/** The page: signing in, the chat, or the developer view, by the address. */
import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { clientFor, loadAccount, saveAccount, type Account } from "./account.js";
import { DevView } from "./dev/DevView.js";
import { useStable, useStored } from "./hooks.js";
import { language, speech, SpeechContext } from "./i18n.js";
import { closeRead, notifyOf } from "./notify.js";
import { applyTheme } from "./theme.js";
import { Chat } from "./ui/Chat.js";
import { SignIn } from "./ui/SignIn.js";

const slot = "xabar:account";

function App() {
  const lang = useStored(language);
  const words = useMemo(() => speech(lang), [lang]);
  const route = useRoute();
  useEffect(() => {
    document.documentElement.lang = lang;
  }, [lang]);
  return (
    <SpeechContext.Provider value={words}>
      {route === "#/dev" ? <DevView /> : <Single route={route} />}
    </SpeechContext.Provider>
  );
}

/** One user in this tab. */
function Single({ route }: { route: string }) {
  const [account, setAccount] = useState(() => loadAccount(slot));
  const change = useStable((next: Account | undefined) => {
    saveAccount(slot, next);
    if (!next) location.hash = "#/";
    setAccount(next);
  });
  if (!account) return <SignIn done={change} />;
  return <SignedIn key={account.userId} account={account} route={route} signOut={() => change(undefined)} />;
}

function SignedIn({ account, route, signOut }: { account: Account; route: string; signOut: () => void }) {
  const [held] = useState(() => ({ account }));
  const client = useMemo(() => clientFor(account, (next) => {
    held.account = next;
    saveAccount(slot, next);
  }), []);
  const token = useStable(() => held.account.token);
  const selected = route.startsWith("#/c/") ? decodeURIComponent(route.slice(4)) : undefined;
  const select = useStable((id: string | undefined) => {
    location.hash = id === undefined ? "#/" : `#/c/${encodeURIComponent(id)}`;
  });

  useEffect(() => {
    void client.start();
    const hurry = () => {
      if (document.visibilityState === "visible") client.wire.hurry();
    };
    addEventListener("online", hurry);
    const stopNotifying = notifyOf(client, select);
    const stopClosing = closeRead(client);
    const stopTitle = client.events.on("change", () => {
      const now = new Date();
      const unread = client.conversations.reduce((n, c) => n + (c.mutedUntil && new Date(c.mutedUntil) > now ? 0 : c.unread), 0);
      document.title = unread > 0 ? `(${unread}) Xabar` : "Xabar";
    });
    return () => {
      removeEventListener("online", hurry);
      stopNotifying();
      stopClosing();
      stopTitle();
      document.title = "Xabar";
      client.stop();
    };
  }, [client]);

  const leave = useStable(() => {
    client.signOut().then(signOut, signOut);
  });
  return <Chat client={client} token={token} signOut={leave} selected={selected} select={select} />;
}

function useRoute(): string {
  const [route, set] = useState(location.hash);
  useEffect(() => {
    const changed = () => set(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

applyTheme();
render(<App />, document.getElementById("app")!);
