import type { RefObject } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { tickOf, VisibleMessages, type ChatClient, type Conversation } from "../../client/src/index.js";
import { useStable } from "../hooks.js";
import { useSpeech } from "../i18n.js";
import { Bubble, type BubbleActions } from "./Bubble.js";
import { Icon } from "./Icon.js";
import { itemsOf, type Item } from "./items.js";
import type { Progress } from "./Ticks.js";

export interface ListHandle {
  toBottom(): void;
  focusLast(): void;
}

interface Props {
  handle: RefObject<ListHandle | null>;
  client: ChatClient;
  conversation: Conversation;
  divider: number | undefined;
  looking: () => boolean;
  now: Date;
  reply: (seq: number) => void;
  showReceipts: (seq: number) => void;
  toComposer: () => void;
}

/** Nearer to the bottom than this counts as being there, in pixels. */
const nearBottom = 60;
/** Older messages are loaded when so little is left above, in pixels. */
const nearTop = 600;
/** Pages that a click on a reply loads at most to get to the original. */
const maxReplyPages = 40;

export function MessageList(p: Props) {
  const { client, conversation: c, divider } = p;
  const speech = useSpeech();
  const { t } = speech;
  const scroller = useRef<HTMLDivElement>(null);
  const messages = client.messages(c.id);
  const outbox = client.outbox(c.id);
  const self = client.userId;
  const items = useMemo(() => itemsOf(messages, outbox, divider, self), [messages, outbox, divider, self]);
  const { atBottom, toBottom, scrolled } = useScrolling(scroller, items, divider !== undefined);
  const [flash, setFlash] = useState<number>();
  const [current, setCurrent] = useState<string>(); // the message that Tab reaches
  const tabStop = current !== undefined && items.some((i) => i.key === current) ? current : lastKey(items);

  const older = useStable(() => {
    const el = scroller.current;
    if (el && el.scrollTop < nearTop && client.connection.status === "online") {
      void client.loadOlder(c.id).catch(() => {}); // the next scroll tries again
    }
  });
  useEffect(older, [messages.length, client.connection.status]);
  useReading(scroller, client, c, p.looking, items, atBottom);

  const goTo = useStable(async (seq: number) => {
    for (let page = 0; page < maxReplyPages && (messagesFrom(client, c.id) ?? 1) > seq; page++) {
      if (!(await client.loadOlder(c.id))) break;
    }
    requestAnimationFrame(() => {
      const target = scroller.current?.querySelector(`[data-seq="${seq}"]`);
      target?.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
      setFlash(seq);
    });
  });
  const actions = useMemo<BubbleActions>(
    () => ({
      reply: p.reply,
      receipts: p.showReceipts,
      goTo: (seq) => void goTo(seq).catch(() => {}),
      lookUp: (seq) => void client.lookUp(c.id, seq).catch(() => {}),
      retry: (id) => void client.retry(id),
      discard: (id) => void client.discard(id),
      focused: setCurrent,
    }),
    [client, c.id],
  );
  useImperativeHandle(p.handle, () => ({
    toBottom,
    focusLast: () => bubbles(scroller.current).at(-1)?.focus(),
  }));

  const nameOf = (id: string) => (id === self ? t.list.you : (client.user(id)?.name ?? "…"));
  return (
    <div class="list">
      <div
        class="scroller"
        ref={scroller}
        role="log"
        aria-label={t.thread.messages(c.title)}
        aria-live={atBottom ? "polite" : "off"}
        onScroll={() => {
          scrolled();
          older();
        }}
        onKeyDown={(e) => moveThrough(e, scroller.current, p.toComposer)}
      >
        <p class="loading">{client.hasOlder(c.id) ? t.thread.loading : t.thread.beginning}</p>
        {items.map((item) => {
          if (item.kind === "day") {
            return <div class="day" key={item.key} data-key={item.key}><span>{speech.day(item.at, p.now)}</span></div>;
          }
          if (item.kind === "divider") {
            return <div class="divider" key={item.key} data-key={item.key} data-divider role="separator"><span>{t.thread.unread}</span></div>;
          }
          const source = item.kind === "message" ? item.message : item.entry;
          const sender = item.kind === "message" ? item.message.senderId : item.entry.userId;
          const replied = source.replyToSeq === undefined ? undefined : client.messageAt(c.id, source.replyToSeq);
          return (
            <Bubble
              key={item.key}
              itemKey={item.key}
              message={item.kind === "message" ? item.message : undefined}
              entry={item.kind === "entry" ? item.entry : undefined}
              mine={sender === self}
              first={item.first}
              sender={nameOf(sender)}
              senderId={sender}
              group={c.kind === "group"}
              progress={progressOf(item, client, c)}
              replied={replied}
              repliedName={replied && nameOf(replied.senderId)}
              speech={speech}
              actions={actions}
              tabStop={item.key === tabStop}
              flash={item.kind === "message" && item.message.seq === flash}
            />
          );
        })}
      </div>
      {!atBottom && (
        <button type="button" class="jump" aria-label={t.thread.jump} title={t.thread.jump} onClick={toBottom}>
          <Icon name="down" />
          {c.unread > 0 && <span class="badge">{c.unread > 999 ? "999+" : c.unread}</span>}
        </button>
      )}
    </div>
  );
}

function progressOf(item: Item, client: ChatClient, c: Conversation): Progress | undefined {
  if (item.kind === "entry") {
    if (item.entry.state === "failed") return "failed";
    return client.isSending(item.entry.id) ? "sending" : "waiting";
  }
  if (item.kind !== "message" || item.message.senderId !== client.userId) return undefined;
  return tickOf(item.message.seq, c);
}

/**
 * Keeps the place: at the bottom it stays there when something comes, anywhere else
 * what is on screen stays where it is, also when older messages come in above.
 */
function useScrolling(scroller: RefObject<HTMLDivElement | null>, items: Item[], startAtDivider: boolean) {
  const [atBottom, setAtBottom] = useState(!startAtDivider);
  const sticks = useRef(!startAtDivider);
  const anchor = useRef<{ key: string; top: number } | undefined>(undefined);
  const measure = () => {
    const el = scroller.current!;
    sticks.current = el.scrollHeight - el.scrollTop - el.clientHeight < nearBottom;
    setAtBottom(sticks.current);
  };

  useLayoutEffect(() => {
    const el = scroller.current!;
    const before = anchor.current;
    if (!before && startAtDivider) {
      const line = el.querySelector<HTMLElement>("[data-divider]");
      el.scrollTop = line ? line.offsetTop - el.clientHeight / 4 : el.scrollHeight;
      measure();
    } else if (sticks.current) {
      el.scrollTop = el.scrollHeight;
    } else if (before) {
      const same = el.querySelector<HTMLElement>(`[data-key="${CSS.escape(before.key)}"]`);
      if (same && same.offsetTop !== before.top) el.scrollTop += same.offsetTop - before.top;
    }
    // The first message, not the day above it: the day moves up when older ones of it come.
    const first = el.querySelector<HTMLElement>(".bubble-line[data-key]");
    anchor.current = first ? { key: first.dataset["key"]!, top: first.offsetTop } : undefined;
  }, [items]);

  useEffect(() => {
    const el = scroller.current!;
    const resized = new ResizeObserver(() => {
      if (sticks.current) el.scrollTop = el.scrollHeight;
      const first = el.querySelector<HTMLElement>(".bubble-line[data-key]");
      if (first && anchor.current) anchor.current = { key: first.dataset["key"]!, top: first.offsetTop };
    });
    resized.observe(el);
    return () => resized.disconnect();
  }, []);

  const toBottom = useStable(() => {
    sticks.current = true;
    setAtBottom(true);
    const el = scroller.current;
    el?.scrollTo({ top: el.scrollHeight });
  });
  return { atBottom, toBottom, scrolled: useStable(measure) };
}

/** Reports as read what is really seen. */
function useReading(scroller: RefObject<HTMLDivElement | null>, client: ChatClient, c: Conversation, looking: () => boolean, items: Item[], atBottom: boolean) {
  const visible = useRef<VisibleMessages | undefined>(undefined);
  useEffect(() => {
    visible.current = new VisibleMessages({ root: scroller.current!, looking, seen: (seq) => client.markRead(c.id, seq) });
    return () => visible.current!.stop();
  }, [client, c.id]);
  useEffect(() => {
    visible.current?.observe(scroller.current!.querySelectorAll("[data-seq]"));
  }, [items]);
  useEffect(() => visible.current?.check(), [atBottom, client.connection.status]);
}

const bubbles = (el: HTMLElement | null) => [...(el?.querySelectorAll<HTMLElement>("[data-bubble]") ?? [])];

/** Arrows go from message to message, Home and End to the ends, Escape back to writing. */
function moveThrough(e: KeyboardEvent, el: HTMLElement | null, toComposer: () => void): void {
  const all = bubbles(el);
  const at = all.findIndex((b) => b === document.activeElement);
  if (e.key === "Escape") return toComposer();
  if (at < 0) return;
  const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  if (to >= all.length) return toComposer();
  all[Math.max(0, to)]?.focus();
}

function lastKey(items: Item[]): string | undefined {
  for (let i = items.length - 1; i >= 0; i--) {
    const item = items[i]!;
    if (item.kind === "message" || item.kind === "entry") return item.key;
  }
  return undefined;
}

const messagesFrom = (client: ChatClient, id: string) => client.messages(id)[0]?.seq;

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
