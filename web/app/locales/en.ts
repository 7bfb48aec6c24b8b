export const en = {
  name: "English",
  tagline: "Messages that always arrive.",
  signIn: {
    title: "Sign in", yourName: "Your name", start: "Start chatting", token: "Token", withToken: "I have a token",
    withName: "Use a name instead", tokenHint: "Paste a JSON Web Token that this gateway accepts.",
    recent: "Recently here", another: "For a second user, open another tab: each remembers its own.",
    failed: "Signing in failed", devView: "Developer view: two users side by side", notDemo: "This gateway has no demo mode.",
  },
  status: {
    connecting: "Connecting…", syncing: "Catching up…", online: "Connected",
    offline: "No connection. What you write is sent when it is back.", refused: "The gateway refused the connection",
    stopped: "Disconnected", signInAgain: "Sign in again", waiting: (n: number) => (n === 1 ? "1 message waits" : `${n} messages wait`),
    restored: "The server went back to a backup. The newest messages before that are lost.", understood: "OK",
  },
  list: {
    title: "Conversations", search: "Search", empty: "No conversations yet", emptyHint: "Choose somebody to write to.",
    start: "New conversation", contacts: "Contacts", nothing: "Nothing found", you: "You", draft: "Draft", muted: "Muted",
    unread: (n: number) => (n === 1 ? "1 unread message" : `${n} unread messages`),
    online: "Online", noMessages: "No messages yet", settings: "Settings",
  },
  contacts: {
    title: "New conversation", search: "Search contacts", none: "Nobody here yet", noneHint: "Open another tab and sign in with another name.",
    group: "New group", groupTitle: "Name of the group", members: (n: number) => (n === 1 ? "1 member" : `${n} members`),
    create: "Create group", chosen: (n: number) => `${n} chosen`, back: "Back",
  },
  thread: {
    choose: "Choose a conversation", chooseHint: "Or start a new one.", back: "Back to the conversations", info: "Information",
    messages: (title: string) => `Messages with ${title}`, beginning: "This is the beginning.", loading: "Loading older messages…",
    unread: "New messages", jump: "Jump to the newest message", typing: (names: string) => `${names} is typing…`,
    typingMany: (names: string) => `${names} are typing…`, typingShort: "typing…", and: " and ", deleted: "Deleted message",
    edited: "edited", unknownReply: "Message", conversationNotFound: "This conversation is not here.",
  },
  presence: { online: "online", lastSeen: (when: string) => `last seen ${when}`, offline: "offline" },
  message: {
    reply: "Reply", info: "Who has read it", copy: "Copy text", more: "Actions", retry: "Send again", discard: "Discard",
    sending: "Sending", waiting: "Waits to be sent", failed: "Not sent", sent: "Sent", delivered: "Delivered", read: "Read",
    replyTo: (name: string) => `Reply to ${name}`, from: (name: string, time: string) => `${name}, ${time}`, copied: "Copied",
  },
  composer: {
    label: "Message", placeholder: "Write a message", send: "Send", cancelReply: "Cancel the reply",
    left: (n: number) => (n === 1 ? "1 character left" : `${n} characters left`),
    over: (n: number) => (n === 1 ? "1 character too many" : `${n} characters too many`),
  },
  receipts: {
    title: "Message", delivered: "Delivered", read: "Read", waiting: "Not delivered yet", yes: "yes", none: "Nobody else is here.",
    sentAt: "Sent",
  },
  info: {
    title: "Information", members: "Members", owner: "owner", admin: "admin", mute: "Mute", unmute: "Unmute", leave: "Leave the group",
    left: "You have left the group", write: "Write", since: "in this conversation", you: "you", reallyLeave: "Leave this group? You will no longer see it.",
    add: "Add members",
  },
  settings: {
    title: "Settings", language: "Language", theme: "Appearance", system: "As the system", light: "Light", dark: "Dark",
    notifications: "Notifications", notifyOn: "Turn on", notifyOff: "Turn off", notifyDenied: "Blocked in the browser's settings.",
    notifyHere: "Shown while this page is open.", notifyPush: "Shown even when this page is closed.", notifyInsecure: "Need a secure address (https or localhost).",
    quiet: "Quiet hours", quietHint: "Notifications wait until they end.", from: "From", until: "Until", quietOn: "Quiet hours on",
    save: "Save", saved: "Saved", signOut: "Sign out", close: "Close", developer: "Developer view", cancel: "Cancel",
    signedInAs: (name: string) => `Signed in as ${name}`,
  },
  notification: { from: (name: string) => name, inGroup: (name: string, title: string) => `${name} in ${title}`, many: (n: number) => `${n} new messages` },
  time: { today: "Today", yesterday: "Yesterday", justNow: "just now", minutes: (n: number) => `${n} min ago`, at: (day: string, time: string) => `${day}, ${time}` },
  error: {
    text_empty: "There is nothing to send.", text_too_long: "The text is too long.", invalid_text: "The text contains a character that can't be sent.",
    not_found: "It is no longer here.", forbidden: "This is not allowed.", unauthenticated: "The token is not valid.", token_expired: "The token has expired.",
    rate_limited: "Too many at once. Try again in a moment.", offline: "There is no connection.", timeout: "No answer came in time.",
    conflict: "This was used for something else.", revoked: "This session was ended.", other: "Something went wrong.",
  } as Record<string, string>,
  dev: {
    title: "Developer view", intro: "Two users, one gateway. Write in one pane and watch every Socket.IO event of both go by.",
    leave: "Back to the chat", pane: (n: number) => `User ${n}`, offline: "Offline", delay: "Delay", loseAnswer: "Lose next answer", loseAck: "Lose next ack",
    loseAnswerHint: "The answer to the next send is thrown away: watch the outbox send it again and the gateway say duplicate.",
    loseAckHint: "The next message is not acknowledged: watch it stay at one tick until it is read.",
    log: "Events", clear: "Clear", pause: "Pause", resume: "Go on", filter: "Filter", empty: "Nothing yet.",
    toServer: "to the gateway", toClient: "to the page", local: "here", answer: "answer", ack: "ack", event: "event", state: "connection", fault: "fault", none: "none", ms: (n: number) => `${n} ms`,
    hideTyping: "Hide typing and presence",
  },
};

export type Locale = typeof en;
