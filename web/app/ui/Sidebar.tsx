import { useMemo, useState } from "preact/hooks";
import { tickOf, type ChatClient, type Contact, type Conversation } from "../../client/src/index.js";
import { drafts } from "../drafts.js";
import { useStable } from "../hooks.js";
import { useSpeech, type Speech } from "../i18n.js";
import { Avatar } from "./Avatar.js";
import { Icon } from "./Icon.js";
import { memo } from "./memo.js";
import { Status } from "./Status.js";
import { Ticks } from "./Ticks.js";

interface Props {
  client: ChatClient;
  selected: string | undefined;
  now: Date;
  open: (id: string) => void;
  openContact: (userId: string) => void;
  startNew: () => void;
  settings: () => void;
  signOut: () => void;
}

export function Sidebar(p: Props) {
  const { client } = p;
  const speech = useSpeech();
  const { t } = speech;
  const [query, setQuery] = useState("");
  const needle = query.trim().toLocaleLowerCase();
  const all = client.conversations;
  const shown = useMemo(() => all.filter((c) => c.title.toLocaleLowerCase().includes(needle)), [all, needle]);
  const others = needle ? contactsWithout(client, needle) : [];
  const open = useStable(p.open);
  const me = client.session?.user ?? client.user(client.userId ?? "");

  return (
    <aside class="sidebar">
      <header class="bar">
        <Avatar id={client.userId ?? ""} name={me?.name ?? ""} />
        <h1 class="grow" dir="auto">{me?.name ?? "Xabar"}</h1>
        <button type="button" class="round" aria-label={t.list.start} title={t.list.start} onClick={p.startNew}><Icon name="plus" /></button>
        <button type="button" class="round" aria-label={t.list.settings} title={t.list.settings} onClick={p.settings}><Icon name="gear" /></button>
      </header>
      <Status client={client} signOut={p.signOut} />
      <div class="search">
        <Icon name="search" />
        <input
          type="search"
          aria-label={t.list.search}
          placeholder={t.list.search}
          value={query}
          onFocus={() => !client.contacts && void client.loadContacts().catch(() => {})}
          onInput={(e) => setQuery(e.currentTarget.value)}
        />
      </div>
      <nav class="rows" aria-label={t.list.title} onKeyDown={moveFocus}>
        <ul>
          {shown.map((c) => (
            <li key={c.id}>
              <Row
                conversation={c}
                draft={c.id === p.selected ? undefined : drafts.get(client.userId, c.id)?.text}
                typing={typingNames(client, c)}
                online={!!c.peer && !!client.presence(c.peer.id)?.online}
                self={client.userId}
                author={c.kind === "group" && c.lastMessage ? client.user(c.lastMessage.senderId)?.name : undefined}
                selected={c.id === p.selected}
                pending={client.outbox(c.id).at(-1)?.text}
                speech={speech}
                now={p.now}
                open={open}
              />
            </li>
          ))}
        </ul>
        {others.length > 0 && (
          <>
            <h2 class="section">{t.list.contacts}</h2>
            <ul>{others.map((c) => <li key={c.user.id}><ContactRow contact={c} choose={p.openContact} /></li>)}</ul>
          </>
        )}
        {needle && shown.length + others.length === 0 && <p class="nothing">{t.list.nothing}</p>}
        {!needle && all.length === 0 && client.connection.status === "online" && (
          <div class="nothing">
            <p><strong>{t.list.empty}</strong></p>
            <p>{t.list.emptyHint}</p>
            <button type="button" class="primary" onClick={p.startNew}>{t.list.start}</button>
          </div>
        )}
      </nav>
    </aside>
  );
}

/** Contacts that match and that there is no conversation with. */
function contactsWithout(client: ChatClient, needle: string): Contact[] {
  return (client.contacts ?? []).filter(
    (c) => c.user.id !== client.userId && c.user.name.toLocaleLowerCase().includes(needle) && !client.directWith(c.user.id),
  );
}

function typingNames(client: ChatClient, c: Conversation): string | undefined {
  const ids = client.typing(c.id);
  if (ids.length === 0) return undefined;
  return c.kind === "direct" ? "" : ids.map((id) => client.user(id)?.name ?? "…").join(", ");
}

interface RowProps {
  conversation: Conversation;
  draft: string | undefined;
  /** Undefined: nobody; empty: the peer. */
  typing: string | undefined;
  online: boolean;
  self: string | undefined;
  author: string | undefined;
  selected: boolean;
  /** The last text that is not sent yet. */
  pending: string | undefined;
  speech: Speech;
  now: Date;
  open: (id: string) => void;
}

const Row = memo((p: RowProps) => {
  const { conversation: c, speech } = p;
  const { t } = speech;
  const muted = !!c.mutedUntil && new Date(c.mutedUntil) > p.now;
  return (
    <button type="button" class="row" data-conversation={c.id} aria-current={p.selected ? "page" : undefined} onClick={() => p.open(c.id)}>
      <Avatar id={c.peer?.id ?? c.id} name={c.title} online={p.online} />
      {p.online && <span class="only-read">{t.presence.online}</span>}
      <span class="row-main">
        <span class="row-line">
          <span class="row-title" dir="auto">{c.title}</span>
          {muted && <><Icon name="muted" class="faint" /><span class="only-read">{t.list.muted}</span></>}
          {c.lastMessage && <time class="row-time" dateTime={c.lastMessage.createdAt}>{speech.short(new Date(c.lastMessage.createdAt), p.now)}</time>}
        </span>
        <span class="row-line">
          <Preview {...p} />
          {c.unread > 0 && (
            <span class={muted ? "badge muted" : "badge"} data-unread={c.unread}>
              <span aria-hidden="true">{c.unread > 999 ? "999+" : c.unread}</span>
              <span class="only-read">{t.list.unread(c.unread)}</span>
            </span>
          )}
        </span>
      </span>
    </button>
  );
});

function Preview(p: RowProps) {
  const { conversation: c, speech: { t } } = p;
  const last = c.lastMessage;
  if (p.typing !== undefined) {
    return <span class="row-text typing-text">{p.typing && <bdi>{p.typing}: </bdi>}{t.thread.typingShort}</span>;
  }
  if (p.draft) return <span class="row-text"><span class="draft">{t.list.draft}: </span><bdi>{oneLine(p.draft)}</bdi></span>;
  if (p.pending) return <><Ticks progress="waiting" /><span class="row-text" dir="auto">{oneLine(p.pending)}</span></>;
  if (!last) return <span class="row-text">{t.list.noMessages}</span>;
  const mine = last.senderId === p.self;
  return (
    <>
      {mine && c.othersReadSeq !== undefined && <Ticks progress={tickOf(last.seq, c)} />}
      <span class="row-text">
        {c.kind === "group" && (mine || p.author) && <bdi>{mine ? t.list.you : p.author}: </bdi>}
        <bdi>{last.deletedAt ? t.thread.deleted : oneLine(last.text)}</bdi>
      </span>
    </>
  );
}

const oneLine = (text: string) => text.slice(0, 200).replace(/\s+/g, " ");

export function ContactRow({ contact, choose, chosen }: { contact: Contact; choose: (userId: string) => void; chosen?: boolean }) {
  const { t } = useSpeech();
  return (
    <button type="button" class="row" aria-pressed={chosen} onClick={() => choose(contact.user.id)}>
      <Avatar id={contact.user.id} name={contact.user.name} online={contact.online} />
      <span class="row-main">
        <span class="row-title" dir="auto">{contact.user.name}</span>
        {contact.online && <span class="row-text">{t.presence.online}</span>}
      </span>
      {chosen && <Icon name="check" class="accent" />}
    </button>
  );
}

/** Up and down go through the rows, as in a list. */
export function moveFocus(e: KeyboardEvent): void {
  if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
  const rows = [...(e.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".row")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  if (at < 0) return;
  e.preventDefault();
  rows[at + (e.key === "ArrowDown" ? 1 : -1)]?.focus();
}
