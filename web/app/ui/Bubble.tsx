import { useEffect, useState } from "preact/hooks";
import { textParts, type Message, type OutboxEntry } from "../../client/src/index.js";
import { errorText, type Speech } from "../i18n.js";
import { Avatar } from "./Avatar.js";
import { Icon } from "./Icon.js";
import { memo } from "./memo.js";
import { Ticks, type Progress } from "./Ticks.js";

export interface BubbleActions {
  reply: (seq: number) => void;
  receipts: (seq: number) => void;
  goTo: (seq: number) => void;
  lookUp: (seq: number) => void;
  retry: (entryId: string) => void;
  discard: (entryId: string) => void;
  focused: (key: string) => void;
}

interface Props {
  itemKey: string;
  /** A stored message, or one that is on its way. */
  message: Message | undefined;
  entry: OutboxEntry | undefined;
  mine: boolean;
  first: boolean;
  sender: string;
  senderId: string;
  group: boolean;
  progress: Progress | undefined;
  replied: Message | undefined;
  repliedName: string | undefined;
  speech: Speech;
  actions: BubbleActions;
  tabStop: boolean;
  flash: boolean;
}

export const Bubble = memo((p: Props) => {
  const { message, entry, speech: { t, time } } = p;
  const text = message?.text ?? entry!.text;
  const at = message?.createdAt ?? entry!.createdAt;
  const replyToSeq = message?.replyToSeq ?? entry?.replyToSeq;
  const shown = time(new Date(at));
  const kind = `${p.mine ? " mine" : ""}${p.first ? " first" : ""}${p.group ? " in-group" : ""}`;
  return (
    <div class={`bubble-line${kind}`} data-key={p.itemKey} data-seq={message?.seq}>
      {p.group && !p.mine && (p.first ? <Avatar id={p.senderId} name={p.sender} small /> : <span class="avatar small none" />)}
      <article
        class={`bubble${p.flash ? " flash" : ""}${p.progress === "failed" ? " failed" : ""}`}
        data-bubble
        tabIndex={p.tabStop ? 0 : -1}
        aria-label={t.message.from(p.sender, shown)}
        onFocus={() => p.actions.focused(p.itemKey)}
        onKeyDown={(e) => {
          if (e.target !== e.currentTarget || !message || e.ctrlKey || e.metaKey || e.altKey) return;
          if (e.key === "r" || e.key === "R") (e.preventDefault(), p.actions.reply(message.seq));
          if (e.key === "Enter" || e.key === "i") (e.preventDefault(), p.actions.receipts(message.seq));
        }}
      >
        {p.group && !p.mine && p.first && <span class="sender" dir="auto">{p.sender}</span>}
        {replyToSeq !== undefined && <Quote {...p} seq={replyToSeq} />}
        <div class="body">
          {message?.deletedAt ? <p class="text deleted">{t.thread.deleted}</p> : <Text text={text} />}
          <span class="meta">
            {message?.editedAt && <span>{t.thread.edited}</span>}
            <time dateTime={at}>{shown}</time>
            {p.progress && <Ticks progress={p.progress} />}
          </span>
        </div>
        {entry?.state === "failed" && (
          <div class="failure">
            <p>{t.message.failed}. {errorText(t, entry.error?.code ?? "other")}</p>
            <button type="button" class="chip" onClick={() => p.actions.retry(entry.id)}><Icon name="retry" /> {t.message.retry}</button>
            <button type="button" class="chip" onClick={() => p.actions.discard(entry.id)}><Icon name="trash" /> {t.message.discard}</button>
          </div>
        )}
      </article>
      {message && <Actions message={message} tabStop={p.tabStop} speech={p.speech} actions={p.actions} />}
    </div>
  );
});

/** Text is text: pieces become text nodes, and addresses links that tell the other side nothing. */
function Text({ text }: { text: string }) {
  return (
    <p class="text" dir="auto">
      {textParts(text).map((part) =>
        part.href ? <a href={part.href} target="_blank" rel="noopener noreferrer nofollow" dir="ltr">{part.text}</a> : part.text,
      )}
    </p>
  );
}

function Quote({ seq, replied, repliedName, speech: { t }, actions }: Props & { seq: number }) {
  useEffect(() => {
    if (!replied) actions.lookUp(seq);
  }, [seq, !replied]);
  return (
    <button type="button" class="quote" tabIndex={-1} data-reply-to={seq} onClick={() => actions.goTo(seq)}>
      <span class="quote-name" dir="auto">{repliedName ?? t.thread.unknownReply}</span>
      <span class="quote-text" dir="auto">{replied ? (replied.deletedAt ? t.thread.deleted : replied.text.slice(0, 200)) : `#${seq}`}</span>
    </button>
  );
}

/** Shown on hover and focus, always where there is no hover. */
function Actions({ message, tabStop, speech: { t }, actions }: { message: Message; tabStop: boolean; speech: Speech; actions: BubbleActions }) {
  const [copied, setCopied] = useState(false);
  const tab = tabStop ? 0 : -1;
  const copy = async () => {
    await navigator.clipboard.writeText(message.text);
    setCopied(true);
  };
  return (
    <span class="actions" onMouseLeave={() => setCopied(false)}>
      <button type="button" class="round mini" tabIndex={tab} aria-label={t.message.reply} title={t.message.reply} data-action="reply" onClick={() => actions.reply(message.seq)}><Icon name="reply" /></button>
      <button type="button" class="round mini" tabIndex={tab} aria-label={t.message.info} title={t.message.info} data-action="receipts" onClick={() => actions.receipts(message.seq)}><Icon name="info" /></button>
      {isSecureContext && (
        <button type="button" class="round mini" tabIndex={tab} aria-label={copied ? t.message.copied : t.message.copy} title={copied ? t.message.copied : t.message.copy} onClick={() => void copy().catch(() => {})}>
          <Icon name={copied ? "check" : "copy"} />
        </button>
      )}
    </span>
  );
}
