import { useEffect, useState } from "preact/hooks";
import { ChatError, type ChatClient, type Conversation, type Receipt } from "../../client/src/index.js";
import { errorText, useSpeech, type Speech } from "../i18n.js";
import { Avatar } from "./Avatar.js";
import { Aside } from "./Info.js";

/** For one message: who has it, who has read it, since when. */
export function Receipts({ client, conversation: c, seq, now, close }: { client: ChatClient; conversation: Conversation; seq: number; now: Date; close: () => void }) {
  const speech = useSpeech();
  const { t } = speech;
  const [receipts, setReceipts] = useState<Receipt[]>();
  const [error, setError] = useState<string>();
  const message = client.messageAt(c.id, seq);
  const members = client.members(c.id);

  // Each receipt that moves the ticks or a member brings new times.
  useEffect(() => {
    let gone = false;
    client.receipts(c.id, seq).then(
      (r) => !gone && (setReceipts(r), setError(undefined)),
      (e: unknown) => !gone && setError(ChatError.from(e).code),
    );
    return () => {
      gone = true;
    };
  }, [client, c.id, seq, members, c.othersReadSeq, c.othersDeliveredSeq, client.connection.status]);

  return (
    <Aside title={t.receipts.title} close={close}>
      {message && (
        <>
          <blockquote class="excerpt" dir="auto">{message.text.slice(0, 300)}</blockquote>
          <p class="hint">{t.receipts.sentAt}: {speech.moment(new Date(message.createdAt), now)}</p>
        </>
      )}
      {error && !receipts && <p class="error" role="alert">{errorText(t, error)}</p>}
      {receipts?.length === 0 && <p class="hint">{t.receipts.none}</p>}
      <ul class="people">
        {receipts?.map((r) => (
          <li key={r.userId} data-receipt={r.readAt ?? r.read ? "read" : r.deliveredAt ?? r.delivered ? "delivered" : "sent"}>
            <Avatar id={r.userId} name={client.user(r.userId)?.name ?? "?"} small />
            <div class="grow">
              <p dir="auto"><strong>{client.user(r.userId)?.name ?? r.userId}</strong></p>
              <When label={t.receipts.read} at={r.readAt} is={r.read} speech={speech} now={now} />
              <When label={t.receipts.delivered} at={r.deliveredAt} is={r.delivered} speech={speech} now={now} />
              {!r.deliveredAt && !r.readAt && !r.delivered && !r.read && <p class="hint">{t.receipts.waiting}</p>}
            </div>
          </li>
        ))}
      </ul>
    </Aside>
  );
}

function When({ label, at, is, speech, now }: { label: string; at: string | null; is?: boolean; speech: Speech; now: Date }) {
  if (!at && !is) return null;
  return <p class="hint">{label}: {at ? <time dateTime={at}>{speech.moment(new Date(at), now)}</time> : speech.t.receipts.yes}</p>;
}
