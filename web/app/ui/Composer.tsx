import type { RefObject } from "preact";
import { useEffect, useId, useLayoutEffect, useState } from "preact/hooks";
import { checkText, codePoints, type ChatClient, type Conversation } from "../../client/src/index.js";
import { drafts } from "../drafts.js";
import { useSpeech } from "../i18n.js";
import { Icon } from "./Icon.js";

/** The counter shows when so few characters are left. */
const counterFrom = 200;

interface Props {
  box: RefObject<HTMLTextAreaElement | null>;
  client: ChatClient;
  conversation: Conversation;
  replyTo: number | undefined;
  cancelReply: () => void;
  send: (text: string) => Promise<void>;
  toMessages: () => void;
}

export function Composer(p: Props) {
  const { client, conversation: c } = p;
  const { t } = useSpeech();
  const id = useId();
  const [text, setText] = useState(() => drafts.get(client.userId, c.id)?.text ?? "");
  const max = client.limits.maxTextLength;
  const left = max - codePoints(text);
  const problem = checkText(text, max);
  const replied = p.replyTo === undefined ? undefined : client.messageAt(c.id, p.replyTo);

  useEffect(() => drafts.set(client.userId, c.id, { text, replyToSeq: p.replyTo }), [p.replyTo]);
  useLayoutEffect(() => {
    // Where the browser does not size the box to its content.
    const box = p.box.current;
    if (!box || CSS.supports("field-sizing", "content")) return;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
  }, [text]);

  const submit = () => {
    if (problem) return;
    setText("");
    drafts.set(client.userId, c.id, { text: "" });
    p.send(text).catch(() => {
      setText(text);
      drafts.set(client.userId, c.id, { text });
    });
    p.box.current?.focus();
  };
  const keyDown = (e: KeyboardEvent) => {
    if (e.isComposing) return; // Enter belongs to the input method
    // With a finger Enter makes a line; the button sends.
    if (e.key === "Enter" && !e.shiftKey && !matchMedia("(pointer: coarse)").matches) {
      e.preventDefault();
      submit();
    } else if (e.key === "Escape" && p.replyTo !== undefined) p.cancelReply();
    else if (e.key === "ArrowUp" && text === "") {
      e.preventDefault();
      p.toMessages();
    }
  };

  return (
    <form
      class="composer"
      onSubmit={(e) => {
        e.preventDefault();
        submit();
      }}
    >
      {p.replyTo !== undefined && (
        <div class="reply-bar">
          <Icon name="reply" />
          <div class="grow quote-lines">
            <span class="quote-name" dir="auto">{t.message.replyTo(replied ? (replied.senderId === client.userId ? t.list.you : (client.user(replied.senderId)?.name ?? "…")) : `#${p.replyTo}`)}</span>
            <span class="quote-text" dir="auto">{replied?.text.slice(0, 200)}</span>
          </div>
          <button type="button" class="round" aria-label={t.composer.cancelReply} onClick={p.cancelReply}><Icon name="close" /></button>
        </div>
      )}
      <div class="compose-line">
        <textarea
          ref={p.box}
          rows={1}
          dir="auto"
          aria-label={t.composer.label}
          placeholder={t.composer.placeholder}
          aria-invalid={left < 0}
          aria-describedby={left <= counterFrom ? id : undefined}
          value={text}
          onInput={(e) => {
            setText(e.currentTarget.value);
            // At once: the page may be gone before it is rendered again.
            drafts.set(client.userId, c.id, { text: e.currentTarget.value, replyToSeq: p.replyTo });
            if (e.currentTarget.value !== "") client.type(c.id);
          }}
          onKeyDown={keyDown}
        />
        <button type="submit" class="send" aria-label={t.composer.send} title={t.composer.send} disabled={problem !== null}><Icon name="send" /></button>
      </div>
      <p id={id} class={left < 0 ? "counter over" : "counter"} data-counter={left <= counterFrom ? left : undefined} hidden={left > counterFrom} aria-live="polite">
        {left <= counterFrom && (left < 0 ? t.composer.over(-left) : t.composer.left(left))}
      </p>
    </form>
  );
}
