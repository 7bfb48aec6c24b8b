import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { windowHasFocus, type ChatClient } from "../../client/src/index.js";
import { Api } from "../api.js";
import { useClient, useNow, useStable } from "../hooks.js";
import { useSpeech } from "../i18n.js";
import { keepSubscribed } from "../notify.js";
import { NewChat } from "./NewChat.js";
import { Settings } from "./Settings.js";
import { Sidebar } from "./Sidebar.js";
import { Thread } from "./Thread.js";

interface Props {
  client: ChatClient;
  token: () => string;
  signOut: () => void;
  /** Which conversation is open, and how to open another: by the address, or kept in a pane. */
  selected: string | undefined;
  select: (id: string | undefined) => void;
  /** One of two panes in a page: only the one with the focus counts as looked at. */
  pane?: boolean;
}

/** Groups whose members are fetched for the list alone. */
const maxNameless = 20;

/** One user's whole chat: the list and the open conversation. Fits any width. */
export function Chat({ client, token, signOut, selected, select, pane }: Props) {
  useClient(client);
  const { t } = useSpeech();
  const now = useNow();
  const root = useRef<HTMLDivElement>(null);
  const api = useMemo(() => new Api(token), [token]);
  // Of two users in one page, none is this browser's.
  useEffect(() => (pane ? undefined : keepSubscribed(client, api)), [client, api, pane]);
  const [dialog, setDialog] = useState<"new" | "settings">();
  const looking = useStable(() => windowHasFocus() && (!pane || !!root.current?.contains(document.activeElement)));
  const close = useStable(() => setDialog(undefined));
  const back = useStable(() => {
    const row = root.current?.querySelector<HTMLElement>(`[data-conversation="${CSS.escape(selected ?? "")}"]`);
    select(undefined);
    requestAnimationFrame(() => row?.focus());
  });

  const peers = client.conversations.map((c) => c.peer?.id).filter((id) => id !== undefined).join();
  useEffect(() => client.watchPresence(peers ? peers.split(",") : []), [client, peers]);

  // Who has written last in a group is named in the list.
  const nameless = client.conversations.filter((c) => c.lastMessage && !client.user(c.lastMessage.senderId)).map((c) => c.id).join();
  useEffect(() => {
    for (const id of nameless ? nameless.split(",").slice(0, maxNameless) : []) void client.loadMembers(id).catch(() => {});
  }, [client, nameless]);

  const openContact = useStable(async (userId: string) => {
    const conversation = client.directWith(userId) ?? (await client.openDirect(userId));
    select(conversation.id);
  });
  const open = useStable((id: string) => {
    if (id === selected) root.current?.querySelector<HTMLElement>(".composer textarea")?.focus();
    else select(id);
  });
  const conversation = selected === undefined ? undefined : client.conversation(selected);

  return (
    <div class="chat" ref={root} data-open={selected !== undefined}>
      <Sidebar
        client={client}
        selected={selected}
        now={now}
        open={open}
        openContact={(id) => void openContact(id).catch(() => {})}
        startNew={() => setDialog("new")}
        settings={() => setDialog("settings")}
        signOut={signOut}
      />
      <main class="main">
        {conversation ? (
          <Thread key={conversation.id} client={client} api={api} conversation={conversation} looking={looking} now={now} back={back} openContact={openContact} pane={!!pane} />
        ) : (
          <div class="empty">
            <img src="/logo.svg" alt="" width="72" height="72" />
            {selected !== undefined && client.connection.status === "online" ? (
              <>
                <p>{t.thread.conversationNotFound}</p>
                <button type="button" class="link" onClick={() => select(undefined)}>{t.thread.back}</button>
              </>
            ) : (
              selected === undefined && <><p><strong>{t.thread.choose}</strong></p><p>{t.thread.chooseHint}</p></>
            )}
          </div>
        )}
      </main>
      {dialog === "new" && <NewChat client={client} close={close} opened={select} />}
      {dialog === "settings" && <Settings client={client} api={api} close={close} signOut={signOut} pane={!!pane} />}
    </div>
  );
}
