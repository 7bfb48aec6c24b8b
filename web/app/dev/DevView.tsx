/**
 * Two users side by side, every event of both as it goes by, and switches that break
 * things: how a newcomer understands the protocol in five minutes.
 */
import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import type { ChatClient, Faults } from "../../client/src/index.js";
import { clientFor, demoMode, loadAccount, saveAccount, signInByName, type Account } from "../account.js";
import { useStable } from "../hooks.js";
import { useSpeech } from "../i18n.js";
import { Chat } from "../ui/Chat.js";
import { Icon } from "../ui/Icon.js";
import { SignIn } from "../ui/SignIn.js";
import { EventLog, useLog, type Log } from "./EventLog.js";

const users = ["Alice", "Bob"] as const;
const delays = [0, 300, 1000, 3000];

/** Short, so that a lost answer shows its consequence while one looks. */
const answerTimeoutMs = 3000;

export function DevView() {
  const { t } = useSpeech();
  const log = useLog();
  return (
    <div class="dev">
      <header class="bar dev-bar">
        <img src="/logo.svg" alt="" width="28" height="28" />
        <h1>{t.dev.title}</h1>
        <p class="hint grow">{t.dev.intro}</p>
        <a class="secondary" href="#/"><Icon name="back" /> {t.dev.leave}</a>
      </header>
      <div class="dev-grid">
        {users.map((name, i) => <Pane key={i} index={i} name={name} log={log} />)}
        <EventLog log={log} />
      </div>
    </div>
  );
}

/** One of the two: signs itself in where that needs no more than a name. */
function Pane({ index, name, log }: { index: number; name: string; log: Log }) {
  const { t } = useSpeech();
  const slot = `xabar:dev:${index}`;
  const [account, setAccount] = useState(() => loadAccount(slot));
  const change = useStable((next: Account | undefined) => {
    saveAccount(slot, next);
    setAccount(next);
  });
  useEffect(() => {
    if (!account && demoMode) signInByName(name).then(change, () => {}); // the form is there
  }, []);
  return (
    <section class={`pane pane-${index}`} aria-label={t.dev.pane(index + 1)} data-pane={index}>
      {account ? <PaneChat key={account.userId} account={account} slot={slot} index={index} log={log} signOut={() => change(undefined)} /> : <SignIn compact done={change} />}
    </section>
  );
}

function PaneChat({ account, slot, index, log, signOut }: { account: Account; slot: string; index: number; log: Log; signOut: () => void }) {
  const [held] = useState(() => ({ account }));
  const [selected, select] = useState<string>();
  const client = useMemo(() => clientFor(account, (next) => {
    held.account = next;
    saveAccount(slot, next);
  }, answerTimeoutMs), []);
  const token = useStable(() => held.account.token);
  useEffect(() => {
    const stop = client.wire.events.on("record", (r) => log.add(index, account.name, r));
    void client.start();
    return () => {
      stop();
      client.stop();
    };
  }, [client]);
  return (
    <>
      <FaultBar client={client} name={account.name} index={index} />
      <Chat client={client} token={token} signOut={() => void client.signOut().then(signOut, signOut)} selected={selected} select={select} pane />
    </>
  );
}

function FaultBar({ client, name, index }: { client: ChatClient; name: string; index: number }) {
  const { t } = useSpeech();
  const [, again] = useReducer((n: number, _: Faults) => n + 1, 0);
  useEffect(() => client.wire.events.on("faults", again), [client]);
  const { wire } = client;
  const f = wire.faults;
  const toggle = (fault: "offline" | "loseNextAnswer" | "loseNextAck", label: string, hint?: string) => (
    <button type="button" class="chip" aria-pressed={f[fault]} title={hint} data-fault={fault} onClick={() => wire.setFaults({ [fault]: !f[fault] })}>
      {label}
    </button>
  );
  return (
    <div class="faults" role="group" aria-label={name}>
      <span class={`who who-${index}`}><bdi>{name}</bdi></span>
      {toggle("offline", t.dev.offline)}
      {toggle("loseNextAnswer", t.dev.loseAnswer, t.dev.loseAnswerHint)}
      {toggle("loseNextAck", t.dev.loseAck, t.dev.loseAckHint)}
      <label class="delay">
        {t.dev.delay}
        <select value={f.delayMs} onChange={(e) => wire.setFaults({ delayMs: Number(e.currentTarget.value) })}>
          {delays.map((ms) => <option key={ms} value={ms}>{ms === 0 ? t.dev.none : t.dev.ms(ms)}</option>)}
        </select>
      </label>
    </div>
  );
}
