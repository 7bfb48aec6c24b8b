import { useEffect, useRef, useState } from "preact/hooks";
import type { ChatClient, Conversation } from "../../client/src/index.js";
import type { Api } from "../api.js";
import { drafts } from "../drafts.js";
import { useStable } from "../hooks.js";
import { useSpeech } from "../i18n.js";
import { Avatar } from "./Avatar.js";
import { Composer } from "./Composer.js";
import { Icon } from "./Icon.js";
import { Info } from "./Info.js";
import { MessageList, type ListHandle } from "./MessageList.js";
import { Receipts } from "./Receipts.js";

/** Pages of history that opening a conversation loads at most to show the first unread message. */
const maxOpeningPages = 10;
const enoughMessages = 30;

interface Props {
  client: ChatClient;
  api: Api;
  conversation: Conversation;
  looking: () => boolean;
  now: Date;
  back: () => void;
  openContact: (userId: string) => Promise<void>;
  pane: boolean;
}

export function Thread({ client, api, conversation: c, looking, now, back, openContact, pane }: Props) {
  const { t } = useSpeech();
  const list = useRef<ListHandle>(null);
  const composer = useRef<HTMLTextAreaElement>(null);
  const [divider, setDivider] = useDivider(client, c, looking);
  const ready = useOpening(client, c, divider);
  const [replyTo, setReplyTo] = useState(() => drafts.get(client.userId, c.id)?.replyToSeq);
  const [aside, setAside] = useState<{ kind: "info" } | { kind: "receipts"; seq: number }>();

  useEffect(() => {
    if (client.connection.status === "online" && !client.members(c.id)) void client.loadMembers(c.id).catch(() => {});
  }, [client, c.id, c.memberCount, client.connection.status]);
  useEffect(() => {
    // On a touch screen the keyboard would cover what one came to read.
    if (!pane && matchMedia("(pointer: fine)").matches) composer.current?.focus();
  }, []);

  const reply = useStable((seq: number) => {
    setReplyTo(seq);
    composer.current?.focus();
  });
  const showReceipts = useStable((seq: number) => setAside({ kind: "receipts", seq }));
  const closeAside = useStable(() => setAside(undefined));
  const focusComposer = useStable(() => composer.current?.focus());
  const send = useStable(async (text: string) => {
    const replyToSeq = replyTo;
    setReplyTo(undefined);
    setDivider(undefined);
    const sent = client.send({ conversationId: c.id, text, replyToSeq });
    list.current?.toBottom();
    await sent;
  });

  return (
    <div class="thread" data-thread={c.id}>
      <header class="bar">
        <button type="button" class="round back" aria-label={t.thread.back} onClick={back}><Icon name="back" /></button>
        <Avatar id={c.peer?.id ?? c.id} name={c.title} online={!!c.peer && !!client.presence(c.peer.id)?.online} />
        <div class="grow title">
          <h2 dir="auto">{c.title}</h2>
          <Subtitle client={client} conversation={c} now={now} />
        </div>
        <button type="button" class="round" aria-label={t.thread.info} title={t.thread.info} aria-expanded={aside?.kind === "info"} onClick={() => setAside(aside?.kind === "info" ? undefined : { kind: "info" })}>
          <Icon name="info" />
        </button>
      </header>
      <div class="thread-body">
        <div class="thread-main">
          {ready ? (
            <MessageList handle={list} client={client} conversation={c} divider={divider} looking={looking} now={now} reply={reply} showReceipts={showReceipts} toComposer={focusComposer} />
          ) : (
            <div class="scroller"><p class="loading" role="status">{t.thread.loading}</p></div>
          )}
          <Composer box={composer} client={client} conversation={c} replyTo={replyTo} cancelReply={() => setReplyTo(undefined)} send={send} toMessages={() => list.current?.focusLast()} />
        </div>
        {aside?.kind === "info" && <Info client={client} api={api} conversation={c} now={now} close={closeAside} left={back} openContact={openContact} />}
        {aside?.kind === "receipts" && <Receipts client={client} conversation={c} seq={aside.seq} now={now} close={closeAside} />}
      </div>
    </div>
  );
}

/**
 * Where the line "new messages" stands: before what was unread when the conversation
 * was opened, or before what came while nobody was looking.
 */
function useDivider(client: ChatClient, c: Conversation, looking: () => boolean) {
  const [divider, setDivider] = useState(() => (c.unread > 0 ? c.lastReadSeq + 1 : undefined));
  useEffect(
    () =>
      client.events.on("message", ({ message }) => {
        if (message.conversationId !== c.id || looking()) return;
        const read = client.conversation(c.id)?.lastReadSeq ?? 0;
        setDivider((d) => (d === undefined || d <= read ? read + 1 : d));
      }),
    [client, c.id],
  );
  return [divider, setDivider] as const;
}

/** Loads what a first look needs. False until it is there, or can't be had. */
function useOpening(client: ChatClient, c: Conversation, divider: number | undefined): boolean {
  const enough = () => {
    const messages = client.messages(c.id);
    const first = messages[0]?.seq ?? Infinity;
    return !client.hasOlder(c.id) || (messages.length >= enoughMessages && (divider === undefined || first <= divider));
  };
  const { status } = client.connection;
  // Without a connection what was kept is shown; scrolling up asks again later.
  const [ready, setReady] = useState(() => enough() || (status !== "online" && client.messages(c.id).length > 0));
  useEffect(() => {
    if (ready || status !== "online") return;
    let gone = false;
    const load = async () => {
      for (let page = 0; page < maxOpeningPages && !enough(); page++) await client.loadOlder(c.id);
    };
    load()
      .catch(() => {}) // shown by the connection's state; scrolling up tries again
      .finally(() => {
        if (!gone) setReady(true);
      });
    return () => {
      gone = true;
    };
  }, [client, c.id, status]);
  return ready;
}

function Subtitle({ client, conversation: c, now }: { client: ChatClient; conversation: Conversation; now: Date }) {
  const speech = useSpeech();
  const { t } = speech;
  const { status } = client.connection;
  if (status !== "online") {
    // What is known of the other side is old, and on a phone the list's own line is out of sight.
    return <p class="subtitle">{status === "offline" ? t.error["offline"] : t.status[status]}</p>;
  }
  const typing = client.typing(c.id);
  if (typing.length > 0) {
    const names = typing.map((id) => client.user(id)?.name ?? "…");
    const text = c.kind === "direct" ? t.thread.typingShort
      : names.length === 1 ? t.thread.typing(names[0]!)
      : t.thread.typingMany(names.slice(0, -1).join(", ") + t.thread.and + names.at(-1));
    return <p class="subtitle typing-text" data-typing>{text}</p>;
  }
  if (c.kind === "group") return <p class="subtitle">{t.contacts.members(c.memberCount)}</p>;
  const p = c.peer && client.presence(c.peer.id);
  if (!p) return <p class="subtitle">&nbsp;</p>;
  return (
    <p class="subtitle" data-presence={p.online ? "online" : "offline"}>
      {p.online ? t.presence.online : p.lastSeenAt ? t.presence.lastSeen(speech.ago(new Date(p.lastSeenAt), now)) : t.presence.offline}
    </p>
  );
}
