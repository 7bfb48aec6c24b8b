import { useEffect, useMemo, useState } from "preact/hooks";
import { ChatError, codePoints, type ChatClient } from "../../client/src/index.js";
import { useClient } from "../hooks.js";
import { errorText, useSpeech } from "../i18n.js";
import { Dialog } from "./Dialog.js";
import { Icon } from "./Icon.js";
import { ContactRow, moveFocus } from "./Sidebar.js";

const maxTitle = 100;

/** Contacts to write to, or to make a group of. */
export function NewChat({ client, close, opened }: { client: ChatClient; close: () => void; opened: (id: string) => void }) {
  useClient(client);
  const { t } = useSpeech();
  const [query, setQuery] = useState("");
  const [group, setGroup] = useState(false);
  const [title, setTitle] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState<string>();
  const online = client.connection.status === "online";

  const run = (ask: () => Promise<unknown>) => {
    setError(undefined);
    ask().catch((e: unknown) => setError(ChatError.from(e).code));
  };
  useEffect(() => {
    if (online) run(() => client.loadContacts());
  }, [client, online]);

  const needle = query.trim().toLocaleLowerCase();
  const contacts = useMemo(
    () => (client.contacts ?? []).filter((c) => c.user.id !== client.userId && c.user.name.toLocaleLowerCase().includes(needle)),
    [client.contacts, needle],
  );
  const choose = (userId: string) => {
    if (!group) return run(() => start(userId));
    const next = new Set(chosen);
    if (!next.delete(userId)) next.add(userId);
    setChosen(next);
  };
  const start = async (userId: string) => {
    const conversation = client.directWith(userId) ?? (await client.openDirect(userId));
    close();
    opened(conversation.id);
  };
  const create = async () => {
    const conversation = await client.createGroup(title.trim(), [...chosen]);
    close();
    opened(conversation.id);
  };
  const ready = title.trim() !== "" && codePoints(title.trim()) <= maxTitle && chosen.size > 0;

  return (
    <Dialog title={group ? t.contacts.group : t.contacts.title} close={close}>
      <form
        class="new-chat"
        onSubmit={(e) => {
          e.preventDefault();
          if (group && ready) run(create);
        }}
      >
        {group ? (
          <input aria-label={t.contacts.groupTitle} placeholder={t.contacts.groupTitle} value={title} maxLength={200} onInput={(e) => setTitle(e.currentTarget.value)} />
        ) : (
          <button type="button" class="row action" onClick={() => setGroup(true)}>
            <span class="avatar plain"><Icon name="group" /></span>
            <span class="row-main"><span class="row-title">{t.contacts.group}</span></span>
          </button>
        )}
        <div class="search">
          <Icon name="search" />
          <input type="search" autofocus aria-label={t.contacts.search} placeholder={t.contacts.search} value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
        </div>
        {error && <p class="error" role="alert">{errorText(t, error)}</p>}
        <div class="rows" role="group" aria-label={t.list.contacts} onKeyDown={moveFocus}>
          {contacts.map((c) => (
            <ContactRow key={c.user.id} contact={c} choose={choose} chosen={group ? chosen.has(c.user.id) : undefined} />
          ))}
          {client.contacts && contacts.length === 0 && (
            <div class="nothing">
              <p><strong>{needle ? t.list.nothing : t.contacts.none}</strong></p>
              {!needle && <p>{t.contacts.noneHint}</p>}
            </div>
          )}
        </div>
        {group && (
          <footer class="dialog-foot">
            <span class="grow hint" aria-live="polite">{t.contacts.chosen(chosen.size)}</span>
            <button type="button" class="secondary" onClick={() => setGroup(false)}>{t.contacts.back}</button>
            <button type="submit" class="primary" disabled={!ready || !online}>{t.contacts.create}</button>
          </footer>
        )}
      </form>
    </Dialog>
  );
}
